"""From a declaration to the implementation itself. Imports torch."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from speechmeter.subjects.losses.call import Exact, Joint, Pruned
from speechmeter.subjects.losses.known import Known


def exact(known: Known) -> Exact:
    """The loss of a declaration that is not pruned."""
    made: Exact = _loader(known)()
    return made


def pruned(known: Known) -> Pruned:
    """The loss of a declaration that is pruned."""
    made: Pruned = _loader(known)()
    return made


def joint(known: Known) -> Joint:
    """The loss of a declaration that computes the joiner itself."""
    made: Joint = _loader(known)()
    return made


def _loader(known: Known) -> Callable[[], Any]:
    module, _, function = known.load.partition(":")
    found: Callable[[], Any] = getattr(import_module(module), function)
    return found
