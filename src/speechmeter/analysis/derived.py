"""Metrics that follow from others by definition, per round: real-time factors, rates, utilisation, energy per hour."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from speechmeter.analysis import modules, parts, phases, scores
from speechmeter.analysis.floors import floor_s
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.types import BATCHES, Measurement, Record

_HOUR_S = 3600.0
_PRUNED = "pruned"
"""In the name of a loss that leaves cells out: the floor of an exact one is none for it."""


@dataclass(frozen=True, kw_only=True)
class _Round:
    """One record, and the others of its case: exact figures are counted in the first round and hold for all."""

    record: Record
    others: Sequence[Record] = ()

    def values(self, metric: Metric, scope: str = "total") -> tuple[float, ...]:
        found = self.find(metric, scope)
        return found.values if found is not None else ()

    def typical(self, metric: Metric, scope: str = "total") -> float | None:
        """The mean of what was counted for each batch; the median of what was measured again and again."""
        found = self.find(metric, scope)
        if found is None or not found.values:
            return None
        return fmean(found.values) if metric.exact else _middle(found)

    def largest(self, metric: Metric, scope: str = "total") -> float | None:
        """The median of the batch whose median is the highest."""
        found = self.find(metric, scope)
        return max(_middles(found)) if found is not None and found.values else None

    def find(self, metric: Metric, scope: str = "total") -> Measurement | None:
        own = parts.find(self.record, metric, scope)
        if own is not None or not metric.exact:
            return own
        return next((m for other in self.others if (m := parts.find(other, metric, scope)) is not None), None)


Derive = Callable[[_Round, str], tuple[float, int] | None]


def round_value(
    record: Record, metric: Metric, scope: str = "total", others: Sequence[Record] = ()
) -> tuple[float, int] | None:
    """(one figure for this round, samples behind it): the median of raw values, or a derived figure.

    Of several batches it is the mean of each one's median. None when the records do not hold what it needs. `others`
    are rounds of the same case.
    """
    derivation = _DERIVED.get(metric.id)
    if derivation is not None:
        return derivation.derive(_Round(record=record, others=others), scope)
    measurement = parts.find(record, metric, scope)
    if measurement is None or not measurement.values:
        return None
    value = fmean(measurement.values) if metric.exact else _middle(measurement)
    return value, len(measurement.values)


def _middle(measurement: Measurement) -> float:
    return fmean(_middles(measurement))


def _middles(measurement: Measurement) -> list[float]:
    """The median of each batch."""
    batches = int(measurement.notes.get(BATCHES, 1))
    return [median(measurement.values[batch::batches]) for batch in range(batches)]


def sample_values(record: Record, metric: Metric, scope: str = "total", others: Sequence[Record] = ()) -> list[float]:
    """A record's raw values of a metric, or the derived figure of each sample."""
    if metric.id not in _DERIVED:
        measurement = parts.find(record, metric, scope)
        return list(measurement.values) if measurement is not None else []
    amount = _AMOUNTS.get(metric.id)
    if amount is None:
        found = round_value(record, metric, scope, others)
        return [found[0]] if found is not None else []
    pairs = _paired(_Round(record=record, others=others), amount, scope)
    if metric.id == metrics.RTF.id:
        return [time / audio for time, audio in pairs]
    return [amount / time for time, amount in pairs if time > 0]


def why_absent(record: Record, metric: Metric, scope: str = "total") -> str | None:
    """The reason a record gives for not having a metric; None when it gives none."""
    derivation = _DERIVED.get(metric.id)
    sources = derivation.needs if derivation is not None else (metric,)
    for source in sources:
        own_scope = "total" if source.id in _ONLY_TOTAL else scope
        measurement = parts.find(record, source, own_scope)
        if measurement is not None and measurement.unavailable:
            return measurement.unavailable
    if metrics.AUDIO_SECONDS in sources and record.find(metrics.AUDIO_SECONDS.id) is None:
        return "the workload is not audio" if record.status == "ok" else None
    if metric == metrics.MEMORY_NEEDED:
        return _why_no_memory(record, scope)
    return None


def lacking(records: Sequence[Record], metric: Metric) -> list[Metric]:
    """What a metric is made from and none of the records holds in any scope."""
    derivation = _DERIVED.get(metric.id)
    held = {m.metric for record in records for m in record.measurements}
    return [need for need in (derivation.needs if derivation is not None else (metric,)) if need.id not in held]


def _rtf(this: _Round, scope: str) -> tuple[float, int] | None:
    """The median over the calls of one batch; of several batches a ratio of sums, so that it is 1 / RTFx."""
    pairs = _paired(this, metrics.AUDIO_SECONDS, scope)
    if not pairs:
        return None
    if len(_audio(this, scope)) == 1:
        return median(time / audio for time, audio in pairs), len(pairs)
    total_s = sum(audio for _, audio in pairs)
    return (sum(time for time, _ in pairs) / total_s, len(pairs)) if total_s > 0 else None


def _rate(amount: Metric) -> Derive:
    def rate(this: _Round, scope: str) -> tuple[float, int] | None:
        pairs = _paired(this, amount, scope)
        total_time = sum(time for time, _ in pairs)
        return (sum(amount for _, amount in pairs) / total_time, len(pairs)) if total_time > 0 else None

    return rate


def _paired(this: _Round, amount: Metric, scope: str) -> list[tuple[float, float]]:
    """(seconds, amount) of every sample; amounts repeat as batches were fed, in turn."""
    times = this.values(metrics.LATENCY, scope)
    amounts = _audio(this, scope) if amount is metrics.AUDIO_SECONDS else this.values(amount)
    return [(time, amounts[index % len(amounts)]) for index, time in enumerate(times)] if amounts else []


def _audio(this: _Round, scope: str) -> tuple[float, ...]:
    """Seconds of sound to hold a time against: those fed; those made, where a part makes sound or none was fed."""
    fed, made = this.values(metrics.AUDIO_SECONDS), this.values(metrics.AUDIO_MADE, scope)
    found = made if made and (scope != "total" or not fed) else fed
    return found if min(found, default=0.0) > 0 else ()  # a synthesiser may make none


def _waste(true: Metric, padded: Metric) -> Derive:
    def waste(this: _Round, scope: str) -> tuple[float, int] | None:
        needed, fed = this.values(true, scope), this.values(padded, scope)
        return (1 - sum(needed) / sum(fed), len(needed)) if sum(fed) > 0 and len(needed) == len(fed) else None

    return waste


def _per_token(this: _Round, scope: str) -> tuple[float, int] | None:
    time = this.typical(metrics.LATENCY, scope)
    tokens = this.typical(metrics.TOKENS, scope)
    return (time / tokens, len(this.values(metrics.LATENCY, scope))) if time is not None and tokens else None


def _memory_needed(this: _Round, scope: str) -> tuple[float, int] | None:
    roles = parts.part_names([this.record, *this.others]) if scope == "total" else []
    needs = [_held_and_grown(this, f"{parts.PART}{role}") for role in roles] or [_held_and_grown(this, scope)]
    known = [need for need in needs if need is not None]
    return (max(known), 1) if len(known) == len(needs) else None


def _held_and_grown(this: _Round, scope: str) -> float | None:
    grown = next((g for m in _GROWTH if (g := this.largest(m, scope)) is not None), None)
    held = this.typical(metrics.MEMORY_WEIGHTS, scope)
    return grown + held if grown is not None and held is not None else None


def _why_no_memory(record: Record, scope: str) -> str | None:
    roles = parts.part_names([record]) if scope == "total" else []
    for where in [f"{parts.PART}{role}" for role in roles] or [scope]:
        for needed in (metrics.MEMORY_WEIGHTS, *_GROWTH):
            found = parts.find(record, needed, where)
            if found is not None and found.unavailable:
                return found.unavailable
        if where != scope and parts.find(record, metrics.MEMORY_WEIGHTS, where) is None:
            return f"{where.removeprefix(parts.PART)} names no torch module, so its weights are not known"
    return None


def _quotient(above: Metric, below: Metric, factor: float = 1.0) -> Derive:
    """One metric over another; the one below may be known for the whole call alone."""

    def quotient(this: _Round, scope: str) -> tuple[float, int] | None:
        top = this.typical(above, scope)
        bottom = this.typical(below, "total" if below.id in _ONLY_TOTAL else scope)
        return (factor * top / bottom, len(this.values(above, scope))) if top is not None and bottom else None

    return quotient


def _share(this: _Round, scope: str) -> tuple[float, int] | None:
    part, whole = this.typical(metrics.TIME_OPERATOR, scope), this.typical(metrics.TIME_OPERATOR)
    return (part / whole, 1) if part is not None and whole else None


def _score(metric: Metric) -> Derive:
    def score(this: _Round, scope: str) -> tuple[float, int] | None:
        rows = scores.score_rows([this.record], metric) if scope == "total" else ()
        value = scores.score_of(rows, metric)
        return (value, len(rows)) if value is not None else None

    return score


def _floor(this: _Round, scope: str) -> tuple[float, int] | None:
    cells, padded = this.typical(metrics.CELLS), this.typical(metrics.CELLS_PADDED)
    if scope != "total" or cells is None or padded is None or _PRUNED in this.record.case.subject.source:
        return None
    found = floor_s(
        this.record.case.axes,
        cells=cells,
        padded=padded,
        bytes_per_s=this.typical(metrics.PEAK_BANDWIDTH),
        flop_per_s=this.typical(metrics.PEAK_FLOPS),
    )
    return (found, 1) if found is not None else None


def _above_floor(this: _Round, scope: str) -> tuple[float, int] | None:
    time, least = this.typical(metrics.LATENCY), _floor(this, scope)
    return (time / least[0], 1) if time is not None and least is not None and least[0] > 0 else None


def _module_share(this: _Round, scope: str) -> tuple[float, int] | None:
    """A ratio of sums, so that the shares of rows add up."""
    time = modules.time_metric([this.record])
    own, whole = this.values(time, scope), this.values(time, _over(scope))
    return (100 * sum(own) / sum(whole), len(own)) if own and sum(whole) > 0 else None


def _over(scope: str) -> str:
    """What a share is taken of: the whole call; of a row in one direction, all rows in it."""
    base, direction = modules.parted(scope)
    return f"{modules.ALL_ROWS}@{direction}" if direction and base.startswith(modules.ROW) else modules.EVERYTHING


def _module_calls(this: _Round, scope: str) -> tuple[float, int] | None:
    found = modules.calls(this.record, scope)
    return (found, 1) if found is not None else None


def _module_mfu(this: _Round, scope: str) -> tuple[float, int] | None:
    share, latency = _module_share(this, scope), this.typical(metrics.LATENCY)
    done = [amount for metric in _FLOPS if (amount := this.typical(metric, scope)) is not None]
    best = this.typical(metrics.PEAK_FLOPS)
    if share is None or not share[0] or not latency or not done or not best:
        return None
    return sum(done) / (share[0] / 100 * latency) / best, share[1]


def _energy_per_hour(energy: Metric) -> Derive:
    return _quotient(energy, metrics.AUDIO_SECONDS, _HOUR_S)


def _utilisation(work: Sequence[Metric], peak: Metric | None) -> Derive:
    """Work of a call over its time, as a share of the peak where one is given."""

    def utilisation(this: _Round, scope: str) -> tuple[float, int] | None:
        done = [amount for metric in work if (amount := this.typical(metric, scope)) is not None]
        latency = this.typical(metrics.LATENCY, scope)
        best = 1.0 if peak is None else this.typical(peak)
        if not done or not latency or not best:
            return None
        return sum(done) / latency / best, len(this.values(metrics.LATENCY, scope))

    return utilisation


@dataclass(frozen=True, kw_only=True)
class _Derivation:
    derive: Derive
    needs: tuple[Metric, ...]


def _of(derive: Derive, *needs: Metric) -> _Derivation:
    return _Derivation(derive=derive, needs=needs)


_ONLY_TOTAL = {m.id for m in (metrics.AUDIO_SECONDS, metrics.TOKENS, metrics.PEAK_FLOPS, metrics.PEAK_BANDWIDTH)}
_AMOUNTS = {
    metrics.RTF.id: metrics.AUDIO_SECONDS,
    metrics.RTFX.id: metrics.AUDIO_SECONDS,
    metrics.THROUGHPUT.id: metrics.ITEMS,
}
_FLOPS = (metrics.FLOPS, metrics.FLOPS_BACKWARD)
_GROWTH = (metrics.MEMORY_CPU_PEAK, metrics.MEMORY_CUDA_GROWTH)
_DERIVED: dict[str, _Derivation] = {
    metrics.RTF.id: _of(_rtf, metrics.LATENCY, metrics.AUDIO_SECONDS),
    metrics.RTFX.id: _of(_rate(metrics.AUDIO_SECONDS), metrics.LATENCY, metrics.AUDIO_SECONDS),
    metrics.LATENCY_PER_TOKEN.id: _of(_per_token, metrics.LATENCY, metrics.TOKENS),
    metrics.MEMORY_NEEDED.id: _of(_memory_needed, metrics.MEMORY_WEIGHTS),
    metrics.THROUGHPUT.id: _of(_rate(metrics.ITEMS), metrics.LATENCY),
    metrics.FLOPS_PER_AUDIO_SECOND.id: _of(
        _quotient(metrics.FLOPS, metrics.AUDIO_SECONDS), metrics.FLOPS, metrics.AUDIO_SECONDS
    ),
    metrics.FLOPS_PER_TOKEN.id: _of(_quotient(metrics.FLOPS, metrics.TOKENS), metrics.FLOPS),
    metrics.MFU.id: _of(_utilisation(_FLOPS, metrics.PEAK_FLOPS), metrics.FLOPS, metrics.LATENCY, metrics.PEAK_FLOPS),
    metrics.BANDWIDTH.id: _of(_utilisation((metrics.BYTES_MOVED,), None), metrics.FLOPS, metrics.LATENCY),
    metrics.BANDWIDTH_SHARE.id: _of(
        _utilisation((metrics.BYTES_MOVED,), metrics.PEAK_BANDWIDTH),
        metrics.FLOPS,
        metrics.LATENCY,
        metrics.PEAK_BANDWIDTH,
    ),
    metrics.MODULE_SHARE.id: _of(_module_share, metrics.TIME_MODULE),
    metrics.MODULE_CALLS.id: _of(_module_calls, metrics.TIME_MODULE),
    metrics.MODULE_MFU.id: _of(_module_mfu, metrics.TIME_MODULE, metrics.FLOPS, metrics.LATENCY, metrics.PEAK_FLOPS),
    metrics.PADDING_WASTE.id: _of(
        _waste(metrics.AUDIO_SECONDS, metrics.PADDED_SECONDS), metrics.PADDED_SECONDS, metrics.AUDIO_SECONDS
    ),
    metrics.CELL_WASTE.id: _of(_waste(metrics.CELLS, metrics.CELLS_PADDED), metrics.CELLS_PADDED, metrics.CELLS),
    metrics.FLOOR.id: _of(_floor, metrics.CELLS, metrics.PEAK_BANDWIDTH),
    metrics.FLOOR_RATIO.id: _of(_above_floor, metrics.LATENCY, metrics.CELLS, metrics.PEAK_BANDWIDTH),
    metrics.OPERATOR_SHARE.id: _of(_share, metrics.TIME_OPERATOR),
    metrics.LAUNCH_BOUND.id: _of(phases.launch_bound, metrics.LATENCY, metrics.TIME_GPU),
    metrics.GPU_IDLE.id: _of(phases.gpu_idle, metrics.TIME_SPLIT),
    metrics.RTF_CPU.id: _of(phases.busy_rtf(phases.CPU), metrics.TIME_BUSY, metrics.AUDIO_SECONDS),
    metrics.RTF_GPU.id: _of(phases.busy_rtf(phases.GPU), metrics.TIME_BUSY, metrics.AUDIO_SECONDS),
    **{
        metric.id: _of(_score(metric), *scores.RULES[metric.id].counts, metrics.ANSWERED)
        for metric in (metrics.WER, metrics.CER, metrics.BLEU, metrics.CHRF, metrics.COMPLETENESS)
    },
    **{
        per_hour.id: _of(_energy_per_hour(energy), energy, metrics.AUDIO_SECONDS)
        for energy, per_hour in metrics.ENERGY_PER_AUDIO_HOUR.items()
    },
}
