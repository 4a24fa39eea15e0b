"""Figures that a file of another tool states: its own statistics, with the intervals that it gives.

What two rounds say is combined as any figure is: two rounds are two files of one case.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from speechmeter.analysis.intervals import over_rounds
from speechmeter.core import stated
from speechmeter.core.metrics import STATED, Metric
from speechmeter.core.printable import one_line
from speechmeter.core.types import Case, Measurement, Record

_HEADLINES = (stated.SINGLE, "mean")
_SPREAD = "std"


class Stated(NamedTuple):
    """A figure with its bounds, how many rounds it is of, and the fewest requests behind one of them."""

    value: float
    low: float | None
    high: float | None
    rounds: int
    samples: int


def is_stated(metric: Metric) -> bool:
    """Whether a metric is one of another tool."""
    return metric.combined == "stated"


def is_imported(record: Record) -> bool:
    """Whether another tool measured this case."""
    return record.case.protocol.extra.get("mode") == stated.MODE


def tool_of(case: Case) -> str:
    """The tool that measured an imported case, with its version where the file names it: `guidellm 0.8.1`."""
    about = case.protocol.extra
    return " ".join(one_line(str(about[key])) for key in ("tool", "version") if about.get(key))


def stated_metrics(records: Sequence[Record]) -> list[Metric]:
    """The figures of other tools that these records hold, in the order of their definitions."""
    held = {m.metric for record in records for m in record.measurements if m.values}
    return [metric for metric in STATED.values() if metric.id in held]


def stated_figure(records: Sequence[Record], metric: Metric, statistic: str) -> Stated | None:
    """What the files of a case say of a statistic; None where one that has the metric does not say it."""
    held = [m for record in records if (m := record.find(metric.id)) is not None and m.values]
    found = [_read(one, statistic) for one in held]
    said = [one for one in found if one is not None]
    if not said or len(said) < len(found):
        return None
    samples = min(int(one.notes.get(stated.COUNT, 0)) for one in held)
    if len(said) == 1:
        return Stated(*said[0], 1, samples)
    return Stated(*over_rounds([value for value, _, _ in said], exact=False), len(said), samples)


def _read(measurement: Measurement, statistic: str) -> tuple[float, float | None, float | None] | None:
    says = measurement.notes.get(stated.STATED, {})
    headline = next((says[name] for name in _HEADLINES if name in says), (measurement.values[0], None, None))
    spread = says.get(_SPREAD)
    if statistic == "geomean":
        return tuple(headline)
    if statistic.startswith("mean") and spread is not None:
        value, step = headline[0], spread[0]
        return (value, value - step, value + step) if statistic == "mean-sd" else (value + 3 * step, None, None)
    return tuple(says[statistic]) if statistic in says else None
