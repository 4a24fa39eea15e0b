"""Figures that add up: means over calls and rounds, ratios of such means, and the shares of stages in a call.

Every row of a table is taken over the same calls and the same rounds. A row that a call or a round does not have counts
0 there, or the rows would not add up to the whole. Bounds are Student's t over the rounds' means; those of a ratio are
linearised.

Medians do not add up, and means are moved by one disturbed call. So the shares of stages and of the models of a cascade
are taken over chosen calls: in each round the half of them whose time is nearest to the median. A part's share is its
mean over these / the mean of the call over the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import fmean, median

from speechmeter.analysis import modules
from speechmeter.analysis.intervals import half_width
from speechmeter.analysis.readings import Round, find, may_be_left_out
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.scope import ALL_ROWS, BUSY, EVERYTHING, PART, ROW, SPLIT, STAGE, Scope
from speechmeter.core.types import SAMPLED, Measurement, Record, batch_of_each

CPU, GPU = (Scope.of(BUSY, worker) for worker in ("cpu", "gpu"))
"""Scopes of the busy time."""
_AT_WORK = tuple(Scope.of(SPLIT, kind) for kind in ("kernel", "memcpy"))
_WAITING = tuple(Scope.of(SPLIT, kind) for kind in ("runtime", "cpu", "idle"))
"""Scopes of a call's time in which the GPU worked, and in which it did not."""

Bounds = tuple[float | None, float | None]


@dataclass(frozen=True, kw_only=True)
class Mean:
    """The mean of a metric over the calls of one round."""

    record: Record
    value: float
    calls: int


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """Two means of one round, of the same calls: what is divided, and by what."""

    record: Record
    above: float
    below: float
    calls: int


def round_means(records: Sequence[Record], metric: Metric, scope: str = "total") -> list[Mean]:
    """One mean a round that measured the metric in any scope; empty where no round has it in this one."""
    found = [(record, find(record, metric, scope)) for record in records]
    if not any(m is not None and m.values for _, m in found):
        return []
    means = []
    for record, m in found:
        if m is not None and m.values:
            means.append(Mean(record=record, value=fmean(m.values), calls=len(m.values)))
        # in how many calls the round measured the metric, whatever the scope
        elif calls := max((len(m.values) for m in record.measurements if m.metric == metric.id), default=0):
            if may_be_left_out(record, metric, scope):
                return []
            means.append(Mean(record=record, value=0.0, calls=calls))
    return means


def mean_bounds(values: Sequence[float]) -> Bounds:
    """Bounds of a mean over rounds at 95 %; none with a single round."""
    if len(values) < 2:
        return None, None
    centre, half = fmean(values), half_width(values)
    return centre - half, centre + half


def ratio_of_means(rounds: Sequence[Ratio]) -> float | None:
    """Mean of what is divided / mean of what it is divided by; None where that is 0."""
    below = fmean(one.below for one in rounds) if rounds else 0.0
    return fmean(one.above for one in rounds) / below if below else None


def ratio_bounds(rounds: Sequence[Ratio]) -> Bounds:
    """Bounds of a ratio of means at 95 %, linearised: t on what each round is off the ratio, over the mean below."""
    ratio = ratio_of_means(rounds)
    if ratio is None or len(rounds) < 2:
        return None, None
    below = fmean(one.below for one in rounds)
    half = half_width([(one.above - ratio * one.below) / below for one in rounds])
    return ratio - half, ratio + half


def linearised_logs(values: Sequence[float]) -> list[float] | None:
    """Numbers whose mean is the logarithm of the mean of these, and which spread as these do around it.

    With them the ratio of two means is judged as others are by logarithms. None where the mean is not above 0.
    """
    centre = fmean(values)
    return [math.log(centre) + value / centre - 1 for value in values] if centre > 0 else None


Rounds = Callable[[Sequence[Record], str], list[Ratio]]


def ratio_rounds(records: Sequence[Record], metric: Metric, scope: str) -> list[Ratio]:
    """What a ratio divides in each round that has both parts. Its unit is taken care of: shares in % are × 100."""
    return _RATIOS[metric.id](records, scope)


def ratio_of_round(this: Round, metric: Metric, scope: str) -> tuple[float, int] | None:
    """(the ratio of one round, calls behind it)."""
    records = this.others if any(other is this.record for other in this.others) else [*this.others, this.record]
    rounds = ratio_rounds(records, metric, scope)
    own = next((one for one in rounds if one.record is this.record), None)
    value = None if own is None else ratio_of_means([own])
    return (value, own.calls) if own is not None and value is not None else None


def _module_share(records: Sequence[Record], scope: str) -> list[Ratio]:
    """The share of the whole call; of a row in one direction, that of all rows in it."""
    time, asked = modules.time_metric(records), Scope.parse(scope)
    one_way = asked.direction and asked.kind == ROW
    whole = Scope.parse(ALL_ROWS).in_direction(asked.direction) if one_way else EVERYTHING
    return _divided(round_means(records, time, scope), round_means(records, time, whole), factor=100.0)


def _operator_share(records: Sequence[Record], scope: str) -> list[Ratio]:
    time = metrics.TIME_OPERATOR
    return _divided(round_means(records, time, scope), round_means(records, time))


def _gpu_idle(records: Sequence[Record], scope: str) -> list[Ratio]:
    if scope != "total":
        return []
    work, wait = ([round_means(records, metrics.TIME_SPLIT, kind) for kind in kinds] for kinds in (_AT_WORK, _WAITING))
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
    mean = fmean(fed[batch % len(fed)] for batch in sampled)
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


def is_divided(records: Sequence[Record], metric: Metric, scope: str) -> bool:
    """Whether a scope is a part of the call's figure, of the same calls.

    A stage outside the clock is no part of it, and what makes audio has a real-time factor of that audio.
    """
    if metric.combined != "divided" or Scope.parse(scope).kind not in (STAGE, PART):
        return False
    if metric.id == metrics.RTF.id and any(find(record, metrics.AUDIO_MADE, scope) for record in records):
        return False
    pairs = [(record.find(metrics.LATENCY.id), find(record, metrics.LATENCY, scope)) for record in records]
    found = [(whole, part) for whole, part in pairs if part is not None and part.values]
    return bool(found) and all(
        part.notes.get("clocked", True) and whole is not None and len(whole.values) == len(part.values)
        for whole, part in found
    )


def call_shares(records: Sequence[Record], scope: str) -> list[Ratio]:
    """Time of the part and of the call in each round, over the chosen calls; rounds without such a part have 0."""
    found = []
    for record in records:
        whole, part = record.find(metrics.LATENCY.id), find(record, metrics.LATENCY, scope)
        if whole is None or not whole.values:
            continue
        # of each batch the half of its calls whose time is nearest to the median, by their number
        numbers: dict[int, list[int]] = {}
        for number, batch in enumerate(batch_of_each(whole)):
            numbers.setdefault(batch, []).append(number)
        kept = []
        for calls in numbers.values():
            middle = median(whole.values[call] for call in calls)
            kept.append(sorted(calls, key=lambda call: abs(whole.values[call] - middle))[: ceil(len(calls) / 2)])
        above = _mean(part, kept) if part is not None and part.values else 0.0
        found.append(Ratio(record=record, above=above, below=_mean(whole, kept), calls=len(whole.values)))
    return found


def _mean(measurement: Measurement, kept: Sequence[Sequence[int]]) -> float:
    return fmean(fmean(measurement.values[call] for call in calls) for calls in kept)
