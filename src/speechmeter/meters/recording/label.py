"""The names of our ranges in a profile, and `label`, which opens one around a user's code. Imports no torch."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

MODULE = "speechmeter.module::"
"""A call of the module whose path follows."""
PARAMETER = "speechmeter.parameter::"
"""A gradient has just been added to a parameter of the module whose path follows."""
LABEL = "speechmeter.label::"
"""A range that was opened by `speechmeter.label`."""
STAGE = "speechmeter.stage::"
"""A stage of a call."""
CALL = "speechmeter.call::"
"""A clocked part of the call whose number follows: all ranges of one number are one call."""
OURS = (MODULE, PARAMETER, LABEL, STAGE, CALL)


@contextmanager
def label(name: str) -> Iterator[None]:
    """Give a part of your code a row of its own in a profile: `with label("x"):` or `@label("x")`.

    It does nothing while no profiler runs, and never imports torch.
    """
    torch = sys.modules.get("torch")
    if torch is None or not torch.autograd._profiler_enabled():
        yield
        return
    with torch.profiler.record_function(LABEL + name):
        yield
