"""One round of a case as figures are computed from it: the raw values of a metric, and a typical one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from speechmeter.analysis import parts
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Measurement, Record, by_batch


@dataclass(frozen=True, kw_only=True)
class Round:
    """One record, and the others of its case: exact figures are counted in the first round and hold for all."""

    record: Record
    others: Sequence[Record] = ()

    def values(self, metric: Metric, scope: str = "total") -> tuple[float, ...]:
        """Every value; empty where there is none."""
        found = self.find(metric, scope)
        return found.values if found is not None else ()

    def typical(self, metric: Metric, scope: str = "total") -> float | None:
        """One value for the round, as the metric is combined over calls; None where there is none."""
        found = self.find(metric, scope)
        return None if found is None or not found.values else over_calls(found, metric)

    def largest(self, metric: Metric, scope: str = "total") -> float | None:
        """The median of the batch whose median is the highest."""
        found = self.find(metric, scope)
        return max(_medians(found)) if found is not None and found.values else None

    def find(self, metric: Metric, scope: str = "total") -> Measurement | None:
        """The measurement of a metric in a scope; an exact one also from the other rounds."""
        own = parts.find(self.record, metric, scope)
        if own is not None or not metric.exact:
            return own
        return next((m for other in self.others if (m := parts.find(other, metric, scope)) is not None), None)


def over_calls(measurement: Measurement, metric: Metric) -> float:
    """One figure for a round: the mean of what is counted or adds up, else the median of each batch, their mean."""
    if metric.exact or metric.combined == "mean":
        return fmean(measurement.values)
    return fmean(_medians(measurement))


def _medians(measurement: Measurement) -> list[float]:
    return [median(values) for values in by_batch(measurement)]
