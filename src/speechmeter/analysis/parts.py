"""The models of a cascade as parts: what their stages `asr.features`, `asr.model`, `asr.decode` hold together.

The scope of a part is `part:asr`. Times, FLOPs and tokens of its clocked stages add, call by call; of memory growth
the highest counts; weights add.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from speechmeter.analysis import modules, operators
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.scope import PART, STAGE, Scope
from speechmeter.core.types import Measurement, Record


def part_names(records: Iterable[Record]) -> list[str]:
    """The models of a cascade in their order; empty for a plain model."""
    rows = (m for record in records for m in record.measurements if m.metric == metrics.LATENCY.id)
    scopes = (Scope.parse(m.scope) for m in rows)
    roles = [scope.path.rpartition(".")[0] for scope in scopes if scope.kind == STAGE]
    return list(dict.fromkeys(role for role in roles if role))


def find(record: Record, metric: Metric, scope: str) -> Measurement | None:
    """The measurement of a metric in a scope, parts put together from their stages, and modules as asked."""
    if modules.is_made(record, metric, scope):
        return modules.find(record, metric, scope)
    asked = Scope.parse(scope)
    if asked.is_in_module:
        return operators.find(record, metric, scope)
    if asked.kind != PART:
        return record.find(metric.id, scope)
    stages = _stages(record, metric, asked.path)
    rows = [m for m in stages if m.values and m.notes.get("clocked", True)]
    if not rows:
        return next((m for m in stages if m.unavailable), None)
    if metric in _LAST:
        return rows[-1]
    together = _TOGETHER.get(metric, sum)
    calls = zip(*(m.values for m in rows), strict=True)
    return Measurement.of(metric, [float(together(call)) for call in calls], scope=scope, notes=rows[0].notes)


def _stages(record: Record, metric: Metric, role: str) -> list[Measurement]:
    rows = ((m, Scope.parse(m.scope)) for m in record.measurements if m.metric == metric.id)
    return [m for m, scope in rows if scope.kind == STAGE and scope.path.startswith(f"{role}.")]


_TOGETHER: dict[Metric, Callable[[Sequence[float]], float]] = {
    metrics.MEMORY_CPU_PEAK: max,
    metrics.MEMORY_CUDA_GROWTH: max,
    metrics.MEMORY_CUDA_ALLOCATED: max,
}
_LAST = (metrics.AUDIO_MADE,)
