"""What a reader finds in a file: benchmarks with their figures, and what it does not carry over.

Readers copy what is on their lists and nothing else. A file may hold prompts, answers, addresses and keys.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from speechmeter.core import metrics, stated
from speechmeter.core.printable import one_line
from speechmeter.core.quality import IMPORTED
from speechmeter.core.types import Measurement

LARGEST = 1e15
"""No number of a benchmark is larger."""
_LARGEST_OF_UNIT = {"s": 1e9, "%": 1e6}
"""No time is longer than 30 years."""
_ROUNDING = 1e-6
"""Relative. Tools round their figures, so that a p99 may exceed the maximum in the last digits."""
_LONGEST_NAME = 200
_MOST_REQUESTS = 100_000
_PERCENTILE = re.compile(r"p\d+(?:\.\d+)?")


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """One benchmark of a file: of which model, with which input, along which axes, and what was found."""

    model: str
    input: str
    options: Mapping[str, Any] = field(default_factory=dict)
    axes: Mapping[str, Any] = field(default_factory=dict)
    started: str = ""
    wall_s: float = 0.0
    measurements: tuple[Measurement, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a file holds. `left_out` says what was not carried over, a sentence each."""

    tool: str
    version: str = ""
    benchmarks: tuple[Benchmark, ...] = ()
    left_out: tuple[str, ...] = ()


class NotSaid(Exception):  # noqa: N818 - tells one reader's caller that a value is not one, and never leaves a reader
    """A value is there, and is no number that a figure may have. The text says why."""


def number(value: Any, *, factor: float = 1.0, most: float = LARGEST) -> float | None:
    """A number from 0 on, times a factor and then at most `most`; None where there is none. Raises NotSaid."""
    if value is None:
        return None
    if type(value) not in (int, float):
        raise NotSaid(f"{_short(value)} is not a number")
    if isinstance(value, float) and math.isnan(value):
        raise NotSaid("nan is not a number")
    if value < 0:
        raise NotSaid("a value below 0")
    if value > LARGEST or value * factor > most:
        raise NotSaid(f"a value above {most / factor:g}")
    return float(value) * factor


def _short(value: Any) -> str:
    """A value for a message. A list or a mapping of a stranger may be of any size, and hold keys."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return repr(name(value, ""))[:40]
    return "a list" if isinstance(value, list) else "an object"


def name(value: Any, otherwise: str = "unknown") -> str:
    """A text of the file as a name in tables: one line, not too long."""
    return one_line(str(value))[:_LONGEST_NAME] if isinstance(value, str | int | float) and value != "" else otherwise


def scalars(data: Any, names: Iterable[str]) -> dict[str, Any]:
    """Those of the named values that are short texts, numbers or switches."""
    kept = {key: data[key] for key in names if isinstance(data, Mapping) and key in data}
    return {
        key: name(value) if isinstance(value, str) else value
        for key, value in kept.items()
        if isinstance(value, bool | str) or (isinstance(value, int | float) and abs(value) <= LARGEST)
    }


class Figures:
    """The figures of one benchmark, taken one after another. What cannot be read is said, and not carried over.

    `place` is where in the file the benchmark is; it stands in front of the keys that messages name.
    """

    def __init__(self, file: str, place: str = "") -> None:
        self.measurements: list[Measurement] = []
        self.left_out: list[str] = []
        self._file, self._place = file, place

    def leave_out(self, key: str, why: str) -> None:
        """Say that what the file has under a key is not carried over."""
        self.left_out.append(f"{self._place}{key}: {why}")

    def add(
        self,
        metric: str,
        values: Mapping[str, Any],
        *,
        key: str,
        factor: float = 1.0,
        most: float = LARGEST,
        bounds: Mapping[str, tuple[Any, Any]] | None = None,
        count: Any = None,
    ) -> None:
        """A figure by the name of its metric, from statistic to value. Nothing where the file has no value.

        `key` is what the file calls it, `factor` makes our unit of theirs, and `most` is the largest value in ours.
        """
        definition = metrics.STATED[metric]
        try:
            known = _numbers(values, factor, min(most, _LARGEST_OF_UNIT.get(definition.unit, most)))
        except NotSaid as error:
            self.leave_out(key, str(error))
            return
        if not known:
            return
        headline = next((known[one] for one in (stated.SINGLE, "mean") if one in known), None)
        if headline is None:
            self.leave_out(key, "it has no mean")
            return
        says = {one: [value, *self._ends(one, value, (bounds or {}).get(one), factor, key)]
                for one, value in known.items()}  # fmt: skip
        notes: dict[str, Any] = {stated.STATED: says, stated.FILE: self._file}
        if (requests := self._count(count, key)) is not None:
            notes[stated.COUNT] = requests
        self.measurements.append(Measurement.of(definition, [headline], source=IMPORTED, notes=notes))

    def add_requests(self, metric: str, values: Any, *, key: str, count: Any = None) -> None:
        """The values of single requests, in our unit, beside the summary that was added last.

        `count` is how many the file says that there are.
        """
        if not self.measurements or self.measurements[-1].metric != metrics.STATED[metric].id or values in (None, []):
            return
        if not isinstance(values, list) or len(values) > _MOST_REQUESTS:
            self.leave_out(key, f"not a list of at most {_MOST_REQUESTS:,} numbers")
            return
        if type(count) is int and len(values) != count:
            self.leave_out(key, f"it has {len(values)} values for {count} requests")
            return
        requests = []
        for index, value in enumerate(values):
            try:
                found = number(value, most=_LARGEST_OF_UNIT["s"])
            except NotSaid as error:
                self.leave_out(f"{key}[{index}]", str(error))
                return
            if found is None:
                self.leave_out(f"{key}[{index}]", "it has no value")
                return
            requests.append(found)
        last = self.measurements.pop()
        self.measurements.append(replace(last, notes={**last.notes, stated.REQUESTS: requests}))

    def absent(self, metric: str, reason: str) -> None:
        """A figure that the file names and does not have."""
        self.measurements.append(Measurement.absent(metrics.STATED[metric], reason, notes={stated.FILE: self._file}))

    def _count(self, value: Any, key: str) -> float | None:
        try:
            found = number(value)
        except NotSaid as error:
            self.leave_out(f"{key}, number of requests", str(error))
            return None
        if found is not None and not found.is_integer():
            self.leave_out(f"{key}, number of requests", f"{found:g} is not a whole number")
            return None
        return found

    def _ends(
        self, statistic: str, value: float, ends: tuple[Any, Any] | None, factor: float, key: str
    ) -> list[float | None]:
        """The ends of an interval; of one that does not hold its value, or has one end alone, none."""
        if ends is None or ends == (None, None):
            return [None, None]
        try:
            low, high = (number(end, factor=factor) for end in ends)
        except NotSaid as error:
            self.leave_out(f"{key}, interval of {statistic}", str(error))
            return [None, None]
        if low is None or high is None or not low <= value * (1 + _ROUNDING) or not value <= high * (1 + _ROUNDING):
            self.leave_out(f"{key}, interval of {statistic}", "it does not contain the value")
            return [None, None]
        return [min(low, value), max(high, value)]


def _numbers(values: Mapping[str, Any], factor: float, most: float) -> dict[str, float]:
    """The numbers by statistic. Raises NotSaid, with the statistic, for a value that is none, or out of order."""
    found = {}
    for statistic, value in values.items():
        try:
            one = number(value, factor=factor, most=most)
        except NotSaid as error:
            raise NotSaid(str(error) if statistic == stated.SINGLE else f"{statistic} is {error}") from None
        if one is not None:
            found[statistic] = one
    ordered = sorted((one for one in found if _PERCENTILE.fullmatch(one)), key=lambda one: float(one[1:]))
    ordered = [one for one in ("min", *ordered, "max") if one in found]
    pairs = [*pairwise(ordered), *((low, high) for low, high in (("min", "mean"), ("mean", "max"))
                                   if low in found and high in found)]  # fmt: skip
    for low, high in pairs:
        if found[low] > found[high] * (1 + _ROUNDING):
            raise NotSaid(f"{low} ({found[low] / factor:g}) is above {high} ({found[high] / factor:g})")
    return found


def linear_percentile(values: list[float], percent: float) -> float:
    """The percentile between two neighbours of a sorted list, as NumPy and most tools compute it."""
    position = percent / 100 * (len(values) - 1)
    below = math.floor(position)
    above = min(below + 1, len(values) - 1)
    return values[below] + (position - below) * (values[above] - values[below])


def others(data: Mapping[str, Any], known: Iterable[str]) -> list[str]:
    """The keys of a mapping that a reader does not know, as names."""
    return sorted(name(key) for key in data.keys() - set(known))
