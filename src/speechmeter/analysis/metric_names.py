"""The metric that a user means by a word. Every command and every function that takes a metric's name asks here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from speechmeter.analysis.derived import lacking
from speechmeter.analysis.figures import definition
from speechmeter.analysis.quality import best_score
from speechmeter.analysis.selecting import by_case
from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.metrics import Metric
from speechmeter.core.plugins import nearest
from speechmeter.core.types import Record

MEMORY, MODULES, METHODS = "memory", "modules", "methods"
TABLES = (
    "summary", "stages", "cold-start", MODULES, "operators", "operators-by-module", "coverage", "utilisation",
    "cascades", "relations", "utterances", "losses", "split", "trace", "timeline", "frontier", "growth", "inputs",
)  # fmt: skip
"""Words of `speechmeter show --metric` that are tables of many metrics, and no metric of their own."""


def metric_named(
    name: str,
    records: Sequence[Record] = (),
    *,
    among: Sequence[Record] = (),
    where: str | None = None,
    also: Collection[str] = (),
) -> Metric:
    """The metric of this name for the rounds of one case.

    `memory`, `energy` and `quality` mean what suits the case's device and what it holds. `among` are further records
    that may hold a metric of a plug-in that is not installed. Raises InputError for a word that means no metric; `also`
    are other words that the caller takes, which the error may propose.
    """
    found = find_metric(name, records, among)
    if found is not None:
        return found
    if name in (*TABLES, METHODS) and name not in also:
        fix = f"speechmeter show RUN --metric {name}"
        fix += f", or between two runs: speechmeter compare BASE NEW --metric {name}" if name == MODULES else ""
        what = "text about a run" if name == METHODS else "a table of several metrics"
        raise InputError(f"{name} is {what}, not one metric", where=where, fix=fix)
    raise no_metric(name, metric_names([*records, *among]), where=where, also=also)


def find_metric(name: str, records: Sequence[Record] = (), among: Sequence[Record] = ()) -> Metric | None:
    """As `metric_named`; None for a word that means no metric."""
    if name in _BY_DEVICE:
        return _BY_DEVICE[name](records)
    known = metrics.find(name)
    if known is not None:
        return known
    held = (m for record in (*records, *among) for m in record.measurements)
    return next((definition(m.metric, m.unit) for m in held if name in (m.metric, _bare(m.metric))), None)


def no_metric(name: str, names: Sequence[str], *, where: str | None = None, also: Collection[str] = ()) -> InputError:
    """What to raise for a word that means no metric: the nearest of those that do, or all of them."""
    return InputError(f"there is no metric {name!r}", where=where, fix=nearest(name, sorted({*names, *also})))


def metric_names(records: Sequence[Record] = ()) -> list[str]:
    """Names of the metrics that these records hold or that follow from them; without records, of all metrics."""
    if not records:
        return sorted({*_BY_DEVICE, *(metric.name for metric in metrics.known())})
    measured = {_bare(m.metric) for record in records for m in record.measurements}
    derived = {metric.name for metric in metrics.known() if not lacking(records, metric)}
    found = {*measured, *derived} - {metrics.PHASE.name}
    return sorted({*found, *(word for word in _BY_DEVICE if _BY_DEVICE[word](records).name in found)})


def _bare(metric_id: str) -> str:
    return metric_id.rpartition(".")[0] or metric_id


def _on_cuda(records: Sequence[Record]) -> bool:
    return bool(records) and records[0].case.device.is_cuda


def memory_metric(records: Sequence[Record] = ()) -> Metric:
    """The peak on the case's device: on the CPU that of the whole process, in older runs its growth."""
    if _on_cuda(records):
        return metrics.MEMORY_CUDA_ALLOCATED
    only_growth = _has_values(records, metrics.MEMORY_CPU_PEAK) and not _has_values(records, metrics.MEMORY_CPU_TOTAL)
    return metrics.MEMORY_CPU_PEAK if only_growth else metrics.MEMORY_CPU_TOTAL


def _energy(records: Sequence[Record]) -> Metric:
    """That of the case's device; of the whole system where only that was read."""
    own = metrics.ENERGY_GPU if _on_cuda(records) else metrics.ENERGY_CPU
    read = (metric for metric in (own, metrics.ENERGY_SYSTEM) if _has_values(records, metric))
    return next(read, own)


def _has_values(records: Sequence[Record], metric: Metric) -> bool:
    return any((m := record.find(metric.id)) is not None and m.values for record in records)


def _quality(records: Sequence[Record]) -> Metric:
    """The first of WER, CER, BLEU and chrF that some case has."""
    return best_score(list(by_case(records).values())) or metrics.WER


_BY_DEVICE: Mapping[str, Callable[[Sequence[Record]], Metric]] = {
    MEMORY: memory_metric,
    "energy": _energy,
    "quality": _quality,
}
"""Words that mean one metric of several, chosen by the records."""
