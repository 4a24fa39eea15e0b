"""Results that are not there yet when a call returns, so that its time says nothing of the work."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from functools import partial
from io import IOBase
from itertools import islice
from types import FunctionType
from typing import Any

_DEEPEST, _MOST_PARTS = 4, 100
"""How far into a result is looked, and at how many parts of each container."""

_NO_RESULTS = frozenset({"torch", "numpy", "builtins", "threading"})
"""Packages whose objects hold no results in their attributes."""


def unfinished(output: Any) -> str:
    """What inside a result is still to be computed, in words; empty when all of it is there."""
    for path, value in _parts(output, "", 0):
        kind = _kind(value, whole=not path)
        if kind:
            return f"{kind} (at {path})" if path else kind
    return ""


def _parts(value: Any, path: str, depth: int) -> Iterator[tuple[str, Any]]:
    yield path, value
    if depth == _DEEPEST:
        return
    for name, part in islice(_inside(value), _MOST_PARTS):
        yield from _parts(part, f"{path}{name}", depth + 1)


def _inside(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]", part) for key, part in value.items())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from ((f"[{place}]", part) for place, part in enumerate(value))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from ((f".{field.name}", getattr(value, field.name, None)) for field in dataclasses.fields(value))
    elif type(value).__module__.partition(".")[0] not in _NO_RESULTS and type(getattr(value, "__dict__", None)) is dict:
        yield from ((f".{name}", part) for name, part in vars(value).items() if not name.startswith("_"))


def _kind(value: Any, *, whole: bool) -> str:
    """What an object is that has not done its work yet; of an iterator only inside a result: a whole one is drained."""
    kind = type(value)
    if inspect.isawaitable(value) or hasattr(kind, "__anext__"):
        return "a coroutine" if inspect.iscoroutine(value) else "an awaitable"
    if hasattr(kind, "done") and (hasattr(kind, "result") or hasattr(kind, "wait")):
        return "a future"
    if hasattr(kind, "ready") and hasattr(kind, "get"):
        return "an asynchronous result"
    if hasattr(kind, "block_until_ready"):
        return "an array that is computed asynchronously"
    if callable(getattr(kind, "is_alive", None)) and callable(getattr(kind, "join", None)):
        return "a thread or process that is still running" if value.is_alive() else ""
    if isinstance(value, FunctionType | partial):
        return "a function that is still to be called"
    if callable(getattr(kind, "result", None)):
        return "a future"
    return "an iterator" if hasattr(kind, "__next__") and not whole and not isinstance(value, IOBase) else ""
