"""Inputs of the same form and size with other content: a model that has not seen them keeps no answers to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LONGEST = 5_000_000
"""Numbers in a row; five minutes of sound. More take too long to be moved."""


def other_content(data: Any, turn: int = 1) -> Any:
    """Data of the same form and size with other content; None where it is not known how to make any.

    Numbers change places, so that all of them stay valid: token ids, samples. Samples are also a little quieter: a
    cache may go by their sum.
    """
    if isinstance(data, str):
        words = data.split()
        return _unless_same(" ".join(words[turn:] + words[:turn]), data)
    if isinstance(data, Mapping):
        return _changed_parts(data, {key: other_content(part, turn) for key, part in data.items()})
    if isinstance(data, list | tuple):
        if data and all(isinstance(part, int) for part in data):
            return _unless_same(type(data)([*data[turn:], *data[:turn]]), data)
        parts = _changed_parts(
            dict(enumerate(data)), {place: other_content(part, turn) for place, part in enumerate(data)}
        )
        return None if parts is None else type(data)(parts.values())
    return _rolled(data, turn)


def _unless_same(moved: Any, data: Any) -> Any:
    return None if moved == data else moved


def _changed_parts(parts: Mapping[Any, Any], changed: Mapping[Any, Any]) -> dict[Any, Any] | None:
    """The parts that can be changed are, the others stay; None where none can."""
    if all(part is None for part in changed.values()):
        return None
    return {key: part if changed[key] is None else changed[key] for key, part in parts.items()}


def _rolled(data: Any, turn: int) -> Any:
    """An array or tensor whose last axis is moved on by a few places, and a little quieter if it holds fractions."""
    length = data.shape[-1] if getattr(data, "shape", ()) else 0
    if not 3 <= length <= _LONGEST or not hasattr(data, "reshape"):
        return None
    moved = data[..., [(place + turn) % length for place in range(length)]]
    if "float" in str(data.dtype):
        moved = moved * (1 - turn / 100)
    return moved if bool((moved != data).any()) else None
