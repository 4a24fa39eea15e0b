"""The metrics of records: the one that a user means by a word, and every figure that a case has.

Every command and every function that takes a metric's name asks here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from speechmeter.analysis import scores
from speechmeter.analysis.derived import lacking
from speechmeter.analysis.estimate import Estimate, estimate
from speechmeter.analysis.module_tree import tree
from speechmeter.analysis.modules import time_metric
from speechmeter.analysis.quality import best_score
from speechmeter.analysis.readings import costliest_operators, part_names
from speechmeter.analysis.selecting import by_case
from speechmeter.core import metrics
from speechmeter.core.errors import InputError, command_line
from speechmeter.core.metrics import Metric
from speechmeter.core.plugins import nearest
from speechmeter.core.scope import EVERYTHING, PART, STAGE, Scope
from speechmeter.core.types import Record

MEMORY, ENERGY, QUALITY = "memory", "energy", "quality"
_BY_RECORDS = (MEMORY, ENERGY, QUALITY)
"""Words that mean one metric of several, chosen by the records."""
MODULES, METHODS, LIVE, SPEECH = "modules", "methods", "live", "speech"
TABLES = (
    "summary", "stages", "cold-start", MODULES, "operators", "operators-by-module", "coverage", "utilisation",
    "cascades", "relations", "utterances", "losses", LIVE, "lenses", SPEECH, "streams", "capacity", "split", "trace",
    "timeline", "frontier", "growth", "inputs", "imported", "tune",
)  # fmt: skip
"""Words of `speechmeter show --metric` that are tables of many metrics, and not a metric themselves."""
_LIVE = (
    metrics.FINAL_DELAY, metrics.FIRST_PARTIAL_FROM_ONSET, metrics.WORD_LAG, metrics.PARTIAL_CHURN,
    metrics.LIVE_COMPLETENESS, metrics.LIVE_WER,
    metrics.VOICE_TO_VOICE, metrics.FIRST_SOUND, metrics.UNDERRUN_TOTAL, metrics.SPEECH_RTF, metrics.ROUND_TRIP_WER,
)  # fmt: skip
"""What `live` compares."""
_NO_FIGURES = {metrics.PHASE.id} | {count.id for rule in scores.RULES.values() for count in rule.counts}
"""Readings that are only the raw matter of figures."""
_MOST_OPERATORS = 50
"""So many operators in one module have a figure: the costliest."""


def metric_named(
    name: str,
    records: Sequence[Record] = (),
    *,
    among: Sequence[Record] = (),
    where: str | None = None,
    key: str | None = None,
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
        fix = f"use {command_line('show', 'RUN', metric=name)}"
        if name in (MODULES, LIVE, SPEECH):
            word = LIVE if name == SPEECH else name
            fix += f", or {command_line('compare', 'BASE', 'NEW', metric=word)} to compare two runs"
        what = "text about a run" if name == METHODS else "a table of several metrics"
        raise InputError(f"{name} is {what}, not one metric", where=where, key=key, fix=fix)
    raise no_metric(name, metric_names([*records, *among]), where=where, key=key, also=also)


def find_metric(name: str, records: Sequence[Record] = (), among: Sequence[Record] = ()) -> Metric | None:
    """As `metric_named`; None for a word that means no metric."""
    if name == MEMORY:
        return memory_metric(records)
    if name == ENERGY:  # of the whole system where only that was read
        own = metrics.ENERGY_GPU if _on_cuda(records) else metrics.ENERGY_CPU
        return next((metric for metric in (own, metrics.ENERGY_SYSTEM) if _has_values(records, metric)), own)
    if name == QUALITY:
        return best_score(list(by_case(records).values())) or metrics.WER
    known = metrics.find(name)
    if known is not None:
        return known
    held = (m for record in (*records, *among) for m in record.measurements)
    return next((definition(m.metric, m.unit) for m in held if name in (m.metric, _bare(m.metric))), None)


def no_metric(
    name: str, names: Sequence[str], *, where: str | None = None, key: str | None = None, also: Collection[str] = ()
) -> InputError:
    """What to raise for a word that means no metric: it proposes the nearest of those that do, or all of them."""
    return InputError(f"there is no metric {name!r}", where=where, key=key, fix=nearest(name, sorted({*names, *also})))


def metric_names(records: Sequence[Record] = ()) -> list[str]:
    """Names of the metrics that these records hold or that follow from them; without records, of all metrics."""
    if not records:
        return sorted({*_BY_RECORDS, *(metric.name for metric in metrics.known())})
    measured = {_bare(m.metric) for record in records for m in record.measurements}
    derived = {metric.name for metric in metrics.known() if not lacking(records, metric)}
    found = {*measured, *derived} - {metrics.PHASE.name}
    meant = {word: find_metric(word, records) for word in _BY_RECORDS}
    return sorted({*found, *(word for word, metric in meant.items() if metric is not None and metric.name in found)})


def compared_metrics(
    name: str, base: Sequence[Record], new: Sequence[Record], *, key: str | None = None
) -> list[tuple[Metric, str]]:
    """The (metric, scope) pairs in which two cases are compared by a word.

    `modules` is every module and label that either side has, `live` what a speaker feels of a live system. `memory`
    is that of the whole process and its growth during a call, which a total of libraries and weights would hide. Raises
    InputError as `metric_named` does, and for `modules` and `live` where neither side has them.
    """
    if name == MEMORY and all(memory_metric(side) == metrics.MEMORY_CPU_TOTAL for side in (base, new)):
        return [(metrics.MEMORY_CPU_TOTAL, "total"), (metrics.MEMORY_CPU_PEAK, "total")]
    if name == MEMORY and metrics.MEMORY_CPU_PEAK in map(memory_metric, (base, new)):
        return [(metrics.MEMORY_CPU_PEAK, "total")]  # one side is older, and has no total
    if name == LIVE:
        held = [metric for metric in _LIVE if _has_values(base, metric) or _has_values(new, metric)]
        if not held:
            raise InputError("neither run has a live case", key=key, fix="measure both with `pace: realtime`")
        return [(metric, "total") for metric in held]
    if name != MODULES:
        return [(metric_named(name, base, among=new, key=key, also=[MODULES, LIVE]), "total")]
    lines = dict.fromkeys(line.scope for side in (base, new) for line in tree(side))
    if not lines:
        raise InputError(
            "neither run measured the time of modules; add the meter `modules`",
            key=key,
            fix="measure both with `meters: modules`",
        )
    return [(time_metric(base), scope) for scope in (EVERYTHING, *lines)]


def is_in_family(metric: Metric, word: str) -> bool:
    """Whether a word of a chart means a metric: `rtf` one alone; `memory` and `energy` all of their family."""
    return metric.name == word or metric.name.startswith(f"{word}_")


def memory_metric(records: Sequence[Record] = ()) -> Metric:
    """The peak on the case's device: on the CPU that of the whole process, in older runs its growth."""
    if _on_cuda(records):
        return metrics.MEMORY_CUDA_ALLOCATED
    only_growth = _has_values(records, metrics.MEMORY_CPU_PEAK) and not _has_values(records, metrics.MEMORY_CPU_TOTAL)
    return metrics.MEMORY_CPU_PEAK if only_growth else metrics.MEMORY_CPU_TOTAL


def definition(metric_id: str, unit: str) -> Metric:
    """The registered definition; a plain one for a metric of a plug-in that is not installed."""
    known = metrics.find(metric_id)
    if known is not None:
        return known
    return Metric(id=metric_id, unit=unit, direction="neither", title=_bare(metric_id), formula="see its plug-in")


class Figures:
    """All figures of cases, one case after another; what follows from what is worked out once for all alike."""

    def __init__(self) -> None:
        self._derived: dict[frozenset[str], list[Metric]] = {}

    def of(self, records: Sequence[Record]) -> Iterator[tuple[str, Estimate]]:
        """(scope, figure) of everything that the rounds of one case hold, and of what follows from it."""
        held = frozenset(m.metric for record in records for m in record.measurements)
        scopes: dict[Metric, dict[str, None]] = {}
        for m in (m for record in records for m in record.measurements if m.values and m.metric not in _NO_FIGURES):
            scopes.setdefault(definition(m.metric, m.unit), {})[m.scope] = None
        if metrics.TIME_OPERATOR in scopes:
            scopes[metrics.TIME_OPERATOR] |= dict.fromkeys(costliest_operators(records, _MOST_OPERATORS))
        wider = dict.fromkeys(
            ["total", *(s for found in scopes.values() for s in found if Scope.parse(s).kind == STAGE)]
            + [Scope.of(PART, name) for name in part_names(records)]
        )
        if held not in self._derived:
            others = [metric for metric in metrics.known() if metric.id not in held]
            self._derived[held] = [metric for metric in others if not lacking(records, metric)]
        for metric in self._derived[held]:
            scopes.setdefault(metric, wider)
        for metric, asked in scopes.items():
            for scope in asked:
                found = estimate(records, metric, scope)
                if found is not None:
                    yield str(scope), found


def _bare(metric_id: str) -> str:
    return metric_id.rpartition(".")[0] or metric_id


def _on_cuda(records: Sequence[Record]) -> bool:
    return bool(records) and records[0].case.device.is_cuda


def _has_values(records: Sequence[Record], metric: Metric) -> bool:
    return any((m := record.find(metric.id)) is not None and m.values for record in records)
