"""What one record holds of a metric in a scope: read as it was stored, or put together from what was stored.

The models of a cascade are parts: the scope `part:asr` is what the stages `asr.features`, `asr.model`, `asr.decode`
hold together. Times, FLOPs and tokens of the clocked stages add up, call by call; of memory growth the highest counts.

`op:aten::addmm@encoder.layers.0` is an operator with the module it works for. The row of an operator holds in its notes
what it did for each module, without what is too little. Earlier records have the 50 costliest of these as rows of their
own, and leave out operators below a 10,000th of the time. So one that a round does not have is not known to be 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean, median

from speechmeter.analysis import modules
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.scope import OPERATOR, PART, STAGE, TOTAL, Scope
from speechmeter.core.types import Measurement, Record, by_batch

_INSIDE = "inside"
_TOGETHER: dict[Metric, Callable[[Sequence[float]], float]] = {
    metrics.MEMORY_CPU_PEAK: max,
    metrics.MEMORY_CUDA_GROWTH: max,
    metrics.MEMORY_CUDA_ALLOCATED: max,
}
"""How the stages of a part go together; a sum unless it says otherwise."""


def find(record: Record, metric: Metric, scope: str) -> Measurement | None:
    """The measurement of a metric in any scope; None where the record does not hold it."""
    if scope == TOTAL and metric.id not in modules.TIME_IDS:  # nearly every figure: the rest costs ten times as much
        return record.find(metric.id)
    if modules.is_made(record, metric, scope):
        return modules.find(record, metric, scope)
    asked = Scope.parse(scope)
    if asked.is_in_module:
        return _operator_in_module(record, metric, asked)
    if asked.kind != PART:
        return record.find(metric.id, scope)
    rows = ((m, Scope.parse(m.scope)) for m in record.measurements if m.metric == metric.id)
    stages = [m for m, own in rows if own.kind == STAGE and own.path.startswith(f"{asked.path}.")]
    clocked = [m for m in stages if m.values and m.notes.get("clocked", True)]
    if not clocked:
        return next((m for m in stages if m.unavailable), None)
    if metric == metrics.AUDIO_MADE:
        return clocked[-1]
    together = _TOGETHER.get(metric, sum)
    calls = zip(*(m.values for m in clocked), strict=True)
    return Measurement.of(metric, [float(together(call)) for call in calls], scope=scope, notes=clocked[0].notes)


def part_names(records: Iterable[Record]) -> list[str]:
    """The models of a cascade in their order; empty for a plain model."""
    timed = metrics.LATENCY.id
    found = (_roles(tuple([m.scope for m in record.measurements if m.metric == timed])) for record in records)
    return list(dict.fromkeys(role for roles in found for role in roles))


@lru_cache(maxsize=256)
def _roles(scopes: tuple[str, ...]) -> tuple[str, ...]:
    """The models that stages belong to. Most records of a run have the same stages."""
    stages = (scope for scope in map(Scope.parse, scopes) if scope.kind == STAGE)
    return tuple(role for stage in stages if (role := stage.path.rpartition(".")[0]))


def _operator_in_module(record: Record, metric: Metric, scope: Scope) -> Measurement | None:
    """One value a call; None where the operator did nothing for the module."""
    stored = record.find(metric.id, scope)
    if stored is not None:
        return stored
    operator, module = scope.operator_and_module()
    row = record.find(metric.id, operator)
    apart: Mapping[str, Sequence[float]] = {} if row is None else row.notes.get(_INSIDE, {}).get(module, {})
    if row is None or not apart:
        return None
    values = [sum(call) for call in zip(*apart.values(), strict=True)]  # of all directions
    return Measurement.of(metric, values, scope=scope, notes={"kind": row.notes.get("kind", ""), "module": module})


def operator_calls(record: Record, scope: str) -> float | None:
    """How often an operator runs in one call; None where earlier versions did not count that."""
    row = record.find(metrics.TIME_OPERATOR.id, scope) if Scope.parse(scope).kind == OPERATOR else None
    return None if row is None or "calls" not in row.notes else float(row.notes["calls"])


def recomputed_share(backward: Measurement | None) -> float | None:
    """The share of a backward pass's arithmetic that repeats forward work; None where nothing is repeated."""
    if backward is None or not any(backward.notes.get("recompute", ())):
        return None
    return float(sum(backward.notes["recompute"]) / sum(backward.values))


def costliest_operators(records: Sequence[Record], most: int) -> list[Scope]:
    """The costliest operators in one module that every round has, the costliest first."""
    rounds = [found for record in records if (found := dict(_operators_in_modules(record)))]
    shared = set.intersection(*map(set, rounds)) if rounds else set()
    return sorted(shared, key=lambda scope: (-sum(found[scope] for found in rounds), scope))[:most]


def _operators_in_modules(record: Record) -> Iterator[tuple[Scope, float]]:
    """(operator in a module, its time in one call)."""
    for m in record.measurements:
        if m.metric != metrics.TIME_OPERATOR.id or not m.values or (scope := Scope.parse(m.scope)).kind != OPERATOR:
            continue
        if scope.is_in_module:
            yield scope, sum(m.values) / len(m.values)
        for module, apart in m.notes.get(_INSIDE, {}).items():
            yield scope.in_module(module), sum(map(sum, apart.values())) / len(m.values)


def may_be_left_out(record: Record, metric: Metric, scope: str) -> bool:
    """Whether a record without this row may have left it out as too small, so that it is not known to be 0."""
    asked = Scope.parse(scope)
    if metric.id != metrics.TIME_OPERATOR.id or asked.kind != OPERATOR:
        return False
    total = record.find(metric.id)
    return asked.is_in_module or (total is not None and "calls" not in total.notes)


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
        """The median of the batch whose median is the highest; None where there is none."""
        found = self.find(metric, scope)
        return max(map(median, by_batch(found))) if found is not None and found.values else None

    def find(self, metric: Metric, scope: str = "total") -> Measurement | None:
        """The measurement of a metric in a scope; an exact one also from the other rounds."""
        own = find(self.record, metric, scope)
        if own is not None or not metric.exact:
            return own
        return next((m for other in self.others if (m := find(other, metric, scope)) is not None), None)


def over_calls(measurement: Measurement, metric: Metric) -> float:
    """One figure for a round: the mean of what is counted or adds up, else the median of each batch, their mean."""
    if metric.exact or metric.combined == "mean":
        return fmean(measurement.values)
    batches = by_batch(measurement)
    return median(batches[0]) if len(batches) == 1 else fmean(map(median, batches))
