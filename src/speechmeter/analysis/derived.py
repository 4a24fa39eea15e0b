"""Metrics that follow from others by definition, per round: real-time factors, rates, utilisation, energy per hour."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from speechmeter.analysis import modules, scores
from speechmeter.analysis.means import GPU, ratio_of_round, round_means
from speechmeter.analysis.readings import Round, find, operator_calls, over_calls, part_names
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.scope import PART, Scope
from speechmeter.core.types import SAMPLED, Record

JOINER_WIDTH = 512
"""Outputs of encoder and predictor that the joiner takes, as in the original study."""
_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}
_PRODUCTS = 3


def floor_s(
    axes: Mapping[str, Any], *, cells: float, padded: float, bytes_per_s: float | None, flop_per_s: float | None
) -> float | None:
    """Seconds for one call with this many cells; None for a case that is no loss, or without the peak it needs."""
    vocabulary, size = axes.get("vocabulary"), _BYTES.get(str(axes.get("dtype")))
    if vocabulary is None or size is None:
        return None
    if axes.get("part") == "loss":
        return (cells + padded) * vocabulary * size / bytes_per_s if bytes_per_s else None
    flop = 2 * _PRODUCTS * cells * JOINER_WIDTH * vocabulary
    return flop / flop_per_s if axes.get("part") == "step" and flop_per_s else None


def _launch_bound(this: Round, scope: str) -> tuple[float, int] | None:
    """Latency over the GPU's busy time, from whichever meter took it."""
    latency, busy = this.typical(metrics.LATENCY, scope), this.typical(metrics.TIME_GPU, scope)
    if busy is None and scope == "total":
        busy = this.typical(metrics.TIME_BUSY, GPU)
    return (latency / busy, len(this.values(metrics.LATENCY, scope))) if latency is not None and busy else None


_HOUR_S = 3600.0
_PRUNED = "pruned"
"""In the name of a loss that leaves cells out: the floor of an exact one is none for it."""


Derive = Callable[[Round, str], tuple[float, int] | None]


def round_value(
    record: Record, metric: Metric, scope: str = "total", others: Sequence[Record] = ()
) -> tuple[float, int] | None:
    """(one figure for this round, samples behind it): raw values as the metric combines them, or a derived figure.

    Of several batches it is the mean of each one's median. None when the records do not hold what it needs. `others`
    are rounds of the same case: a row that they have and this round does not is 0 where rows add up.
    """
    if metric.combined == "mean":
        means = round_means(_with(record, others), metric, scope)
        return next(((mean.value, mean.calls) for mean in means if mean.record is record), None)
    derivation = _DERIVED.get(metric.id)
    if derivation is not None:
        return derivation.derive(Round(record=record, others=others), scope)
    measurement = find(record, metric, scope)
    if measurement is None or not measurement.values:
        return None
    return over_calls(measurement, metric), len(measurement.values)


def _with(record: Record, others: Sequence[Record]) -> Sequence[Record]:
    return others if any(other is record for other in others) else [*others, record]


def sample_values(record: Record, metric: Metric, scope: str = "total", others: Sequence[Record] = ()) -> list[float]:
    """A record's raw values of a metric, or the derived figure of each sample."""
    if metric.id not in _DERIVED:
        measurement = find(record, metric, scope)
        return list(measurement.values) if measurement is not None else []
    amount = _AMOUNTS.get(metric.id)
    if amount is None:
        found = round_value(record, metric, scope, others)
        return [found[0]] if found is not None else []
    pairs = _paired(Round(record=record, others=others), amount, scope)
    if metric.id == metrics.RTF.id:
        return [time / audio for time, audio in pairs]
    return [amount / time for time, amount in pairs if time > 0]


def why_absent(record: Record, metric: Metric, scope: str = "total") -> str | None:
    """The reason a record gives for not having a metric; None when it gives none."""
    derivation = _DERIVED.get(metric.id)
    sources = derivation.needs if derivation is not None else (metric,)
    for source in sources:
        own_scope = "total" if source.id in _ONLY_TOTAL else scope
        measurement = find(record, source, own_scope) or record.find(source.id)  # a failed pass has no parts
        if measurement is not None and measurement.unavailable:
            return measurement.unavailable
    if metrics.AUDIO_SECONDS in sources and record.find(metrics.AUDIO_SECONDS.id) is None:
        is_told = record.status == "ok" or record.find(metrics.ITEMS.id) is not None
        return "the workload is not audio" if is_told else None
    if metric == metrics.MEMORY_NEEDED:
        return _why_no_memory(record, scope)
    return None


def lacking(records: Sequence[Record], metric: Metric) -> list[Metric]:
    """What a metric is made from and none of the records holds in any scope."""
    derivation = _DERIVED.get(metric.id)
    held = {m.metric for record in records for m in record.measurements}
    return [need for need in (derivation.needs if derivation is not None else (metric,)) if need.id not in held]


def _rtf(this: Round, scope: str) -> tuple[float, int] | None:
    """The round's latency over the mean audio of a call."""
    audio, time = _audio(this, scope), this.typical(metrics.LATENCY, scope)
    return (time / fmean(audio), len(this.values(metrics.LATENCY, scope))) if audio and time is not None else None


def _rtfx(this: Round, scope: str) -> tuple[float, int] | None:
    found = _rtf(this, scope)
    return (1 / found[0], found[1]) if found is not None and found[0] > 0 else None


def _throughput(this: Round, scope: str) -> tuple[float, int] | None:
    items, time = this.values(metrics.ITEMS), this.typical(metrics.LATENCY, scope)
    return (fmean(items) / time, len(this.values(metrics.LATENCY, scope))) if items and time else None


def _paired(this: Round, amount: Metric, scope: str) -> list[tuple[float, float]]:
    """(seconds, amount) of every sample; amounts are those of its batch."""
    times = this.find(metrics.LATENCY, scope)
    amounts = _audio(this, scope) if amount is metrics.AUDIO_SECONDS else this.values(amount)
    if times is None or not amounts:
        return []
    sampled = times.notes.get(SAMPLED) or range(len(times.values))
    return [(time, amounts[place % len(amounts)]) for place, time in zip(sampled, times.values, strict=True)]


def _audio(this: Round, scope: str) -> tuple[float, ...]:
    """Seconds of sound to hold a time against: those fed; those made, where a part makes sound or none was fed."""
    fed, made = this.values(metrics.AUDIO_SECONDS), this.values(metrics.AUDIO_MADE, scope)
    found = made if made and (scope != "total" or not fed) else fed
    return found if min(found, default=0.0) > 0 else ()  # a synthesiser may make none


def _waste(true: Metric, padded: Metric) -> Derive:
    def waste(this: Round, scope: str) -> tuple[float, int] | None:
        needed, fed = this.values(true, scope), this.values(padded, scope)
        return (1 - sum(needed) / sum(fed), len(needed)) if sum(fed) > 0 and len(needed) == len(fed) else None

    return waste


def _per_token(this: Round, scope: str) -> tuple[float, int] | None:
    time = this.typical(metrics.LATENCY, scope)
    tokens = this.typical(metrics.TOKENS, scope)
    return (time / tokens, len(this.values(metrics.LATENCY, scope))) if time is not None and tokens else None


def _memory_needed(this: Round, scope: str) -> tuple[float, int] | None:
    roles = part_names([this.record, *this.others]) if scope == "total" else []
    needs = [_held_and_grown(this, Scope.of(PART, role)) for role in roles] or [_held_and_grown(this, scope)]
    known = [need for need in needs if need is not None]
    return (max(known), 1) if len(known) == len(needs) else None


def _held_and_grown(this: Round, scope: str) -> float | None:
    grown = next((g for m in _GROWTH if (g := this.largest(m, scope)) is not None), None)
    held = this.typical(metrics.MEMORY_WEIGHTS, scope)
    return grown + held if grown is not None and held is not None else None


def _why_no_memory(record: Record, scope: str) -> str | None:
    roles = part_names([record]) if scope == "total" else []
    weighed = any(m.metric == metrics.MEMORY_WEIGHTS.id for m in record.measurements)
    for where in [Scope.of(PART, role) for role in roles] or [Scope.parse(scope)]:
        for needed in (metrics.MEMORY_WEIGHTS, *_GROWTH):
            found = find(record, needed, where)
            if found is not None and found.unavailable:
                return found.unavailable
        if weighed and where != scope and find(record, metrics.MEMORY_WEIGHTS, where) is None:
            return f"{where.path} names no torch module, so its weights are not known"
    return None


def _quotient(above: Metric, below: Metric, factor: float = 1.0) -> Derive:
    """One metric over another; the one below may be known for the whole call alone."""

    def quotient(this: Round, scope: str) -> tuple[float, int] | None:
        top = this.typical(above, scope)
        bottom = this.typical(below, "total" if below.id in _ONLY_TOTAL else scope)
        return (factor * top / bottom, len(this.values(above, scope))) if top is not None and bottom else None

    return quotient


def _ratio(metric: Metric) -> Derive:
    return lambda this, scope: ratio_of_round(this, metric, scope)


def _score(metric: Metric) -> Derive:
    def score(this: Round, scope: str) -> tuple[float, int] | None:
        rows = scores.score_rows([this.record], metric) if scope == "total" else ()
        value = scores.score_of(rows, metric)
        return (value, len(rows)) if value is not None else None

    return score


def _floor(this: Round, scope: str) -> tuple[float, int] | None:
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


def _above_floor(this: Round, scope: str) -> tuple[float, int] | None:
    time, least = this.typical(metrics.LATENCY), _floor(this, scope)
    return (time / least[0], 1) if time is not None and least is not None and least[0] > 0 else None


def _module_calls(this: Round, scope: str) -> tuple[float, int] | None:
    found = modules.calls(this.record, scope)
    return (found, 1) if found is not None else None


def _operator_calls(this: Round, scope: str) -> tuple[float, int] | None:
    found = operator_calls(this.record, scope)
    return (found, 1) if found is not None else None


def _module_mfu(this: Round, scope: str) -> tuple[float, int] | None:
    share, latency = ratio_of_round(this, metrics.MODULE_SHARE, scope), this.typical(metrics.LATENCY)
    done = [amount for metric in _FLOPS if (amount := this.typical(metric, scope)) is not None]
    best = this.typical(metrics.PEAK_FLOPS)
    if share is None or not share[0] or not latency or not done or not best:
        return None
    return sum(done) / (share[0] / 100 * latency) / best, share[1]


def _energy_per_hour(energy: Metric) -> Derive:
    return _quotient(energy, metrics.AUDIO_SECONDS, _HOUR_S)


def _utilisation(work: Sequence[Metric], peak: Metric | None) -> Derive:
    """Work of a call over its time, as a share of the peak where one is given."""

    def utilisation(this: Round, scope: str) -> tuple[float, int] | None:
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
    metrics.RTFX.id: _of(_rtfx, metrics.LATENCY, metrics.AUDIO_SECONDS),
    metrics.LATENCY_PER_TOKEN.id: _of(_per_token, metrics.LATENCY, metrics.TOKENS),
    metrics.MEMORY_NEEDED.id: _of(_memory_needed, metrics.MEMORY_WEIGHTS),
    metrics.THROUGHPUT.id: _of(_throughput, metrics.LATENCY),
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
    metrics.MODULE_SHARE.id: _of(_ratio(metrics.MODULE_SHARE), metrics.TIME_MODULE),
    metrics.MODULE_CALLS.id: _of(_module_calls, metrics.TIME_MODULE),
    metrics.MODULE_MFU.id: _of(_module_mfu, metrics.TIME_MODULE, metrics.FLOPS, metrics.LATENCY, metrics.PEAK_FLOPS),
    metrics.PADDING_WASTE.id: _of(
        _waste(metrics.AUDIO_SECONDS, metrics.PADDED_SECONDS), metrics.PADDED_SECONDS, metrics.AUDIO_SECONDS
    ),
    metrics.CELL_WASTE.id: _of(_waste(metrics.CELLS, metrics.CELLS_PADDED), metrics.CELLS_PADDED, metrics.CELLS),
    metrics.FLOOR.id: _of(_floor, metrics.CELLS, metrics.PEAK_BANDWIDTH),
    metrics.FLOOR_RATIO.id: _of(_above_floor, metrics.LATENCY, metrics.CELLS, metrics.PEAK_BANDWIDTH),
    metrics.OPERATOR_CALLS.id: _of(_operator_calls, metrics.TIME_OPERATOR),
    metrics.OPERATOR_SHARE.id: _of(_ratio(metrics.OPERATOR_SHARE), metrics.TIME_OPERATOR),
    metrics.LAUNCH_BOUND.id: _of(_launch_bound, metrics.LATENCY, metrics.TIME_GPU),
    metrics.GPU_IDLE.id: _of(_ratio(metrics.GPU_IDLE), metrics.TIME_SPLIT),
    metrics.RTF_CPU.id: _of(_ratio(metrics.RTF_CPU), metrics.TIME_BUSY, metrics.AUDIO_SECONDS),
    metrics.RTF_GPU.id: _of(_ratio(metrics.RTF_GPU), metrics.TIME_BUSY, metrics.AUDIO_SECONDS),
    **{
        metric.id: _of(_score(metric), *scores.RULES[metric.id].counts, metrics.ANSWERED)
        for metric in (metrics.WER, metrics.CER, metrics.BLEU, metrics.CHRF, metrics.COMPLETENESS)
    },
    **{
        per_hour.id: _of(_energy_per_hour(energy), energy, metrics.AUDIO_SECONDS)
        for energy, per_hour in metrics.ENERGY_PER_AUDIO_HOUR.items()
    },
}
