"""What a reader finds in a file: benchmarks with their figures, and what it does not carry over.

Readers copy what is on their lists and nothing else. A file may hold prompts, answers, addresses and keys.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from speechmeter.core import metrics, stated
from speechmeter.core.printable import one_line
from speechmeter.core.quality import IMPORTED
from speechmeter.core.types import Measurement

LARGEST = 1e15
"""No figure of a benchmark is larger."""
_LONGEST_NAME = 200
_MOST_REQUESTS = 100_000


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
    """A value is there, and is no number that a figure may have."""


def number(value: Any, *, factor: float = 1.0) -> float | None:
    """A finite number times a factor; None where there is none. Raises NotSaid for anything else."""
    if value is None:
        return None
    if type(value) not in (int, float) or not math.isfinite(value) or abs(value) > LARGEST:
        raise NotSaid(repr(value)[:40])
    return float(value) * factor


def name(value: Any, otherwise: str = "unknown") -> str:
    """A text of the file as a name in tables: one line, not too long."""
    return one_line(str(value))[:_LONGEST_NAME] if isinstance(value, str | int | float) and value != "" else otherwise


def scalars(data: Any, names: Iterable[str]) -> dict[str, Any]:
    """Those of the named values that are short texts, numbers or switches."""
    kept = {key: data[key] for key in names if isinstance(data, Mapping) and key in data}
    return {
        key: name(value) if isinstance(value, str) else value
        for key, value in kept.items()
        if isinstance(value, bool | str) or (isinstance(value, int | float) and math.isfinite(value))
    }


class Figures:
    """The figures of one benchmark, taken one after another. What cannot be read is said, and not carried over."""

    def __init__(self, file: str) -> None:
        self.measurements: list[Measurement] = []
        self.left_out: list[str] = []
        self._file = file

    def add(
        self,
        metric: str,
        values: Mapping[str, Any],
        *,
        key: str,
        factor: float = 1.0,
        bounds: Mapping[str, tuple[Any, Any]] | None = None,
        count: Any = None,
    ) -> None:
        """A figure by the name of its metric, from statistic to value. Nothing where the file has no value.

        `key` is what the file calls it, `factor` makes our unit of theirs.
        """
        try:
            says: dict[str, list[float | None]] = {}
            numbers: list[float] = []
            for statistic, value in values.items():
                if (found := number(value, factor=factor)) is not None:
                    says[statistic] = [found, *self._ends((bounds or {}).get(statistic), factor)]
                    numbers.append(found)
            headline = next((says[one][0] for one in (stated.SINGLE, "mean", "p50") if one in says), None)
            notes: dict[str, Any] = {stated.STATED: says, stated.FILE: self._file}
            notes |= {} if (known := number(count)) is None else {stated.COUNT: known}
            definition = metrics.STATED[metric]
            if definition.unit == "s" and any(value < 0 for value in numbers):
                raise NotSaid("a time below 0")
        except NotSaid as error:
            self.left_out.append(f"{key}: {error} is not a possible value")
            return
        if headline is not None:
            self.measurements.append(Measurement.of(definition, [headline], source=IMPORTED, notes=notes))

    def add_requests(self, metric: str, values: Any, *, key: str) -> None:
        """The values of single requests, in our unit, beside the summary that was added last."""
        if not isinstance(values, list) or not values or len(values) > _MOST_REQUESTS:
            return
        try:
            requests = [number(one) for one in values]
        except NotSaid as error:
            self.left_out.append(f"{key}: {error} is not a possible value")
            return
        if None not in requests and self.measurements and self.measurements[-1].metric == metrics.STATED[metric].id:
            last = self.measurements.pop()
            self.measurements.append(replace(last, notes={**last.notes, stated.REQUESTS: requests}))

    def absent(self, metric: str, reason: str) -> None:
        """A figure that the file names and does not have."""
        self.measurements.append(Measurement.absent(metrics.STATED[metric], reason, notes={stated.FILE: self._file}))

    @staticmethod
    def _ends(bounds: tuple[Any, Any] | None, factor: float) -> list[float | None]:
        return [None, None] if bounds is None else [number(end, factor=factor) for end in bounds]


def linear_percentile(values: list[float], percent: float) -> float:
    """The percentile between two neighbours of a sorted list, as NumPy and most tools compute it."""
    position = percent / 100 * (len(values) - 1)
    below = math.floor(position)
    above = min(below + 1, len(values) - 1)
    return values[below] + (position - below) * (values[above] - values[below])


def others(data: Mapping[str, Any], known: Iterable[str]) -> list[str]:
    """The keys of a mapping that a reader does not know, as names."""
    return sorted(name(key) for key in data.keys() - set(known))
