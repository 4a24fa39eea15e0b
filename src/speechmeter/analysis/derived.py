"""Metrics that follow from others by definition: real-time factors and throughput, per round."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Record


def round_value(record: Record, metric: Metric, scope: str = "total") -> tuple[float, int] | None:
    """(one figure for this round, samples behind it): the median of raw values, or a derived figure.

    None when the record does not hold what it needs.
    """
    derive = _DERIVED.get(metric.id)
    if derive is not None:
        return derive(record, scope)
    measurement = record.find(metric.id, scope)
    if measurement is None or not measurement.values:
        return None
    return median(measurement.values), len(measurement.values)


def sample_values(record: Record, metric: Metric, scope: str = "total") -> list[float]:
    """A record's raw values of a metric, or the derived figure of each sample."""
    if metric.id not in _DERIVED:
        measurement = record.find(metric.id, scope)
        return list(measurement.values) if measurement is not None else []
    amount = metrics.ITEMS if metric.id == metrics.THROUGHPUT.id else metrics.AUDIO_SECONDS
    pairs = _paired(record, amount.id, scope)
    if metric.id == metrics.RTF.id:
        return [time / audio for time, audio in pairs]
    return [amount / time for time, amount in pairs if time > 0]


def why_absent(record: Record, metric: Metric, scope: str = "total") -> str | None:
    """The reason a record gives for not having a metric; None when it gives none."""
    source = metrics.LATENCY.id if metric.id in _DERIVED else metric.id
    measurement = record.find(source, scope)
    if measurement is not None and measurement.unavailable:
        return measurement.unavailable
    if metric.id in (metrics.RTF.id, metrics.RTFX.id) and record.find(metrics.AUDIO_SECONDS.id) is None:
        return "the workload is not audio" if record.status == "ok" else None
    return None


def _rtf(record: Record, scope: str) -> tuple[float, int] | None:
    pairs = _paired(record, metrics.AUDIO_SECONDS.id, scope)
    return (median(time / audio for time, audio in pairs), len(pairs)) if pairs else None


def _rate(amount: Metric) -> Callable[[Record, str], tuple[float, int] | None]:
    def rate(record: Record, scope: str) -> tuple[float, int] | None:
        pairs = _paired(record, amount.id, scope)
        total_time = sum(time for time, _ in pairs)
        return (sum(amount for _, amount in pairs) / total_time, len(pairs)) if total_time > 0 else None

    return rate


def _paired(record: Record, amount_id: str, scope: str) -> list[tuple[float, float]]:
    """(seconds, amount) of every sample; amounts repeat as batches were fed, in turn."""
    time, amount = record.find(metrics.LATENCY.id, scope), record.find(amount_id)
    if time is None or amount is None or not amount.values:
        return []
    return [(t, amount.values[index % len(amount.values)]) for index, t in enumerate(time.values)]


_DERIVED: dict[str, Callable[[Record, str], tuple[float, int] | None]] = {
    metrics.RTF.id: _rtf,
    metrics.RTFX.id: _rate(metrics.AUDIO_SECONDS),
    metrics.THROUGHPUT.id: _rate(metrics.ITEMS),
}
