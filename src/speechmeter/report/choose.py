"""From the word after `--metric` to tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from speechmeter.analysis.derived import find as find_measurement
from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.metrics import Metric
from speechmeter.core.plugins import nearest
from speechmeter.core.types import Record
from speechmeter.report.grids import grids
from speechmeter.report.lists import cold_start, parameters, stages
from speechmeter.report.tables import Table

_LISTS: dict[str, Callable[[Sequence[Record]], list[Table]]] = {
    "parameters": parameters,
    "cold-start": cold_start,
    "stages": stages,
}
_MEMORY = (metrics.MEMORY_CPU_PEAK, metrics.MEMORY_CUDA_ALLOCATED, metrics.MEMORY_CUDA_RESERVED)


def tables(records: Sequence[Record], metric: str | None) -> list[Table]:
    """The tables of one metric; without one the recipe's two grids and the parameters."""
    if metric is None:
        asked = {name for record in records for name in record.case.meters}
        first = [*tables(records, "rtf")] if "latency" in asked else []
        second = [*tables(records, "memory")] if "memory" in asked else []
        return [*first, *second, *(parameters(records) if "parameters" in asked else [])]
    if metric in _LISTS:
        return _LISTS[metric](records)
    if metric == "memory":
        return [table for found in _memory_metrics(records) for table in grids(_of(records, found), found)]
    return grids(records, _metric(records, metric))


def names(records: Sequence[Record]) -> list[str]:
    """Words that `--metric` takes for these records."""
    measured = {m.metric.rpartition(".")[0] for record in records for m in record.measurements}
    derived = {"rtf", "rtfx", "throughput"} if "latency" in measured else set()
    return sorted({*_LISTS, "memory", *measured, *derived} - {"phase"})


def _memory_metrics(records: Sequence[Record]) -> list[Metric]:
    """The kinds of memory these records are about; the CPU's when no record holds any."""
    measured = {m.metric for record in records for m in record.measurements}
    return [metric for metric in _MEMORY if metric.id in measured] or [_MEMORY[0]]


def _of(records: Sequence[Record], metric: Metric) -> list[Record]:
    """Records whose device has that kind of memory."""
    cuda = "cuda" in metric.id
    return [r for r in records if str(r.case.axes.get("device", "")).startswith("cuda") is cuda]


def _metric(records: Sequence[Record], name: str) -> Metric:
    known = metrics.find(name)
    if known is not None:
        return known
    for record in records:
        for m in record.measurements:
            if name in (m.metric, m.metric.rpartition(".")[0]) and find_measurement(record, m.metric) is not None:
                return Metric(id=m.metric, unit=m.unit, direction="neither", title=name, formula="see its plug-in")
    raise InputError(f"there is no metric {name!r} in this run", where="--metric", fix=nearest(name, names(records)))
