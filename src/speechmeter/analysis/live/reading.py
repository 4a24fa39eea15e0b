"""What one conversation gives to a metric: values, a ratio of two counts, no answer in time, or the reason for none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Of a ratio, `above` and `below` are what is divided, and the value is their quotient.

    `indices` are the words of the reference that the values are about. `missing` says that an answer was awaited in
    vain; `reason` why there is no value.
    """

    values: tuple[float, ...] = ()
    above: float | None = None
    below: float | None = None
    indices: tuple[int, ...] = ()
    missing: bool = False
    reason: str = ""


MISSING = Reading(missing=True)


def value(found: float) -> Reading:
    """A single value."""
    return Reading(values=(found,))


def several(found: Sequence[float], indices: Sequence[int] = ()) -> Reading:
    """A value for each word or text."""
    return Reading(values=tuple(found), indices=tuple(indices))


def ratio(above: float, below: float, *, scale: float = 1.0) -> Reading:
    """A quotient; over 1 where there is nothing to divide by, so that what was too much still shows."""
    return Reading(values=(scale * above / (below or 1),), above=above, below=below)


def none(reason: str) -> Reading:
    """No value, and why."""
    return Reading(reason=reason)
