"""Shares and other ratios of means: both means over the same calls of the same rounds, so that shares add up too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean

from speechmeter.analysis import modules
from speechmeter.analysis.additive import Mean, Ratio, ratio_of_means, round_means
from speechmeter.analysis.phases import AT_WORK, CPU, GPU, WAITING
from speechmeter.analysis.rounds import Round
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.scope import ALL_ROWS, EVERYTHING, ROW, Scope
from speechmeter.core.types import SAMPLED, Record

Rounds = Callable[[Sequence[Record], str], list[Ratio]]


def rounds_of(records: Sequence[Record], metric: Metric, scope: str) -> list[Ratio]:
    """What a ratio divides in each round that has both parts. Its unit is taken care of: shares in % are × 100."""
    return _RATIOS[metric.id](records, scope)


def of_round(this: Round, metric: Metric, scope: str) -> tuple[float, int] | None:
    """(the ratio of one round, calls behind it)."""
    records = this.others if any(other is this.record for other in this.others) else [*this.others, this.record]
    rounds = rounds_of(records, metric, scope)
    own = next((one for one in rounds if one.record is this.record), None)
    value = None if own is None else ratio_of_means([own])
    return (value, own.calls) if own is not None and value is not None else None


def _module_share(records: Sequence[Record], scope: str) -> list[Ratio]:
    time = modules.time_metric(records)
    return _divided(round_means(records, time, scope), round_means(records, time, _over(scope)), factor=100.0)


def _over(scope: str) -> str:
    """What a share is taken of: the whole call; of a row in one direction, all rows in it."""
    asked = Scope.parse(scope)
    one_way = asked.direction and asked.kind == ROW
    return Scope.parse(ALL_ROWS).in_direction(asked.direction) if one_way else EVERYTHING


def _operator_share(records: Sequence[Record], scope: str) -> list[Ratio]:
    time = metrics.TIME_OPERATOR
    return _divided(round_means(records, time, scope), round_means(records, time))


def _gpu_idle(records: Sequence[Record], scope: str) -> list[Ratio]:
    if scope != "total":
        return []
    work, wait = ([round_means(records, metrics.TIME_SPLIT, kind) for kind in kinds] for kinds in (AT_WORK, WAITING))
    return _divided(_summed(wait), _summed([*work, *wait])) if work[0] else []


def _busy_rtf(worker: str) -> Rounds:
    def rtf(records: Sequence[Record], scope: str) -> list[Ratio]:
        busy = round_means(records, metrics.TIME_BUSY, worker) if scope == "total" else []
        return _divided(busy, [audio for mean in busy for audio in _audio_beside(mean, worker, records)])

    return rtf


def _audio_beside(busy: Mean, worker: str, records: Sequence[Record]) -> list[Mean]:
    """The mean seconds of audio that were fed in the calls of a round; its batches came in turn unless it says how."""
    fed = Round(record=busy.record, others=records).values(metrics.AUDIO_SECONDS)
    if min(fed, default=0.0) <= 0:
        return []
    times = busy.record.find(metrics.TIME_BUSY.id, worker)
    sampled = (times.notes.get(SAMPLED) if times is not None else None) or range(busy.calls)
    mean = fmean(fed[place % len(fed)] for place in sampled)
    return [Mean(record=busy.record, value=mean, calls=busy.calls)]


def _summed(rows: Iterable[Sequence[Mean]]) -> list[Mean]:
    """The sum of several rows in each round."""
    sums: dict[int, Mean] = {}
    for mean in (mean for row in rows for mean in row):
        before = sums.get(id(mean.record))
        value = mean.value + (before.value if before is not None else 0.0)
        sums[id(mean.record)] = Mean(record=mean.record, value=value, calls=mean.calls)
    return list(sums.values())


def _divided(above: Sequence[Mean], below: Sequence[Mean], factor: float = 1.0) -> list[Ratio]:
    wholes = {id(mean.record): mean for mean in below}
    return [
        Ratio(record=one.record, above=factor * one.value, below=wholes[id(one.record)].value, calls=one.calls)
        for one in above
        if id(one.record) in wholes
    ]


_RATIOS: dict[str, Rounds] = {
    metrics.MODULE_SHARE.id: _module_share,
    metrics.OPERATOR_SHARE.id: _operator_share,
    metrics.GPU_IDLE.id: _gpu_idle,
    metrics.RTF_CPU.id: _busy_rtf(CPU),
    metrics.RTF_GPU.id: _busy_rtf(GPU),
}
