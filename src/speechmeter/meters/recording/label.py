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
    """Give the code inside a row of its own in a profile: `with label("x"):` or `@label("x")`.

    Without a running profiler it does nothing, and it never imports torch: where torch is not loaded, none can run.
    """
    torch = sys.modules.get("torch")
    if torch is None or not torch.autograd._profiler_enabled():
        yield
        return
    with torch.profiler.record_function(LABEL + name):
        yield
