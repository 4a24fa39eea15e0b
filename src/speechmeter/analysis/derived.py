"""Metrics that follow from others by definition, per round: real-time factors, rates, utilisation, energy per hour."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from speechmeter.analysis import modules, scores
from speechmeter.analysis.live.figures import round_figure
from speechmeter.analysis.live.samples import is_live
from speechmeter.analysis.means import GPU, ratio_of_round, round_means
from speechmeter.analysis.readings import Round, find, operator_calls, over_calls, part_names
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.scope import PART, Scope
from speechmeter.core.types import SAMPLED, Record

JOINER_WIDTH = 512
"""Outputs of encoder and predictor that the joiner takes, as in the original study."""
_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}
_HOUR_S = 3600.0
_PRUNED = "pruned"
"""In the name of a loss that leaves cells out: the least time of an exact loss does not bound it."""

Value = tuple[float, int]
"""A figure of one round, and the samples behind it."""


def round_value(record: Record, metric: Metric, scope: str = "total", others: Sequence[Record] = ()) -> Value | None:
    """(one figure for this round, samples behind it): raw values as the metric combines them, or a derived figure.

    Of several batches it is the mean of each one's median. None when the records do not hold what it needs. `others`
    are rounds of the same case: a row that they have and this round does not is 0 where rows add up.
    """
    if metric.combined == "mean":
        records = others if any(other is record for other in others) else [*others, record]
        means = round_means(records, metric, scope)
        return next(((mean.value, mean.calls) for mean in means if mean.record is record), None)
    if is_live(metric):
        return round_figure(record, metric) if scope == "total" else None
    derivation = _DERIVED.get(metric.id)
    if derivation is not None:
        return derivation.derive(Round(record=record, others=others), scope)
    measurement = find(record, metric, scope)
    if measurement is None or not measurement.values:
        return None
    return over_calls(measurement, metric), len(measurement.values)


def sample_values(record: Record, metric: Metric, scope: str = "total", others: Sequence[Record] = ()) -> list[float]:
    """A record's raw values of a metric, or the derived figure of each sample."""
    if metric.id not in _DERIVED:
        measurement = find(record, metric, scope)
        return list(measurement.values) if measurement is not None else []
    amount = _AMOUNTS.get(metric.id)
    if amount is None:
        found = round_value(record, metric, scope, others)
        return [found[0]] if found is not None else []
    this = Round(record=record, others=others)
    times = this.find(metrics.LATENCY, scope)
    amounts = _audio(this, scope) if amount is metrics.AUDIO_SECONDS else this.values(amount)
    if times is None or not amounts:
        return []
    sampled = times.notes.get(SAMPLED) or range(len(times.values))
    pairs = [(time, amounts[batch % len(amounts)]) for batch, time in zip(sampled, times.values, strict=True)]
    if metric.id == metrics.RTF.id:
        return [time / audio for time, audio in pairs]
    return [amount / time for time, amount in pairs if time > 0]


def why_absent(record: Record, metric: Metric, scope: str = "total") -> str | None:
    """The reason a record gives for not having a metric; None when it gives none."""
    sources = _needs(metric)
    for source in sources:
        own_scope = "total" if source.id in _ONLY_TOTAL else scope
        measurement = find(record, source, own_scope) or record.find(source.id)  # a failed pass has no parts
        if measurement is not None and measurement.unavailable:
            return measurement.unavailable
    if metrics.AUDIO_SECONDS in sources and record.find(metrics.AUDIO_SECONDS.id) is None:
        was_fed = record.status == "ok" or record.find(metrics.ITEMS.id) is not None
        return "the input is not audio" if was_fed else None
    return _why_no_memory(record, scope) if metric == metrics.MEMORY_NEEDED else None


def lacking(records: Sequence[Record], metric: Metric) -> list[Metric]:
    """What a metric is made from and none of the records holds in any scope."""
    held = {m.metric for record in records for m in record.measurements}
    return [need for need in _needs(metric) if need.id not in held]


def _needs(metric: Metric) -> tuple[Metric, ...]:
    derivation = _DERIVED.get(metric.id)
    return (metric,) if derivation is None else derivation.needs


def floor_s(
    axes: Mapping[str, Any], *, cells: float, padded: float, bytes_per_s: float | None, flop_per_s: float | None
) -> float | None:
    """The least seconds that one call of a transducer loss can take on a device of these peaks.

    The loss alone must read every true logit once and write the gradient of every padded one. The step must compute the
    three matrix products of the joiner over the true cells; its logits need not be stored. None for a case that is not
    a loss, or without the peak it needs.
    """
    vocabulary, size = axes.get("vocabulary"), _BYTES.get(str(axes.get("dtype")))
    if vocabulary is None or size is None:
        return None
    if axes.get("part") == "loss":
        return (cells + padded) * vocabulary * size / bytes_per_s if bytes_per_s else None
    flop = 2 * 3 * cells * JOINER_WIDTH * vocabulary
    return flop / flop_per_s if axes.get("part") == "step" and flop_per_s else None


Derive = Callable[[Round, str], Value | None]
Formula = Callable[[Round, str], float | None]
"""From a round and a scope to a figure; None where the round does not hold what it needs."""


def _rtf(this: Round, scope: str) -> float | None:
    """The round's latency over the mean audio of a call."""
    audio, time = _audio(this, scope), this.typical(metrics.LATENCY, scope)
    return time / fmean(audio) if audio and time is not None else None


def _rtfx(this: Round, scope: str) -> float | None:
    rtf = _rtf(this, scope)
    return 1 / rtf if rtf is not None and rtf > 0 else None


def _audio(this: Round, scope: str) -> tuple[float, ...]:
    """Seconds of sound to hold a time against: those fed; those made, where a part makes sound or none was fed."""
    fed, made = this.values(metrics.AUDIO_SECONDS), this.values(metrics.AUDIO_MADE, scope)
    found = made if made and (scope != "total" or not fed) else fed
    return found if min(found, default=0.0) > 0 else ()  # a synthesiser may make none


def _throughput(this: Round, scope: str) -> float | None:
    items, time = this.values(metrics.ITEMS), this.typical(metrics.LATENCY, scope)
    return fmean(items) / time if items and time else None


def _per_token(this: Round, scope: str) -> float | None:
    time, tokens = this.typical(metrics.LATENCY, scope), this.typical(metrics.TOKENS, scope)
    return time / tokens if time is not None and tokens else None


def _waste(true: Metric, padded: Metric) -> Formula:
    def waste(this: Round, scope: str) -> float | None:
        needed, fed = this.values(true, scope), this.values(padded, scope)
        return 1 - sum(needed) / sum(fed) if sum(fed) > 0 and len(needed) == len(fed) else None

    return waste


def _memory_needed(this: Round, scope: str) -> float | None:
    """Weights and growth: of a cascade those of its largest model, as its models may be loaded one after another."""
    roles = part_names([this.record, *this.others]) if scope == "total" else []
    found = []
    for where in [Scope.of(PART, role) for role in roles] or [Scope.parse(scope)]:
        grown = next((g for m in _GROWTH if (g := this.largest(m, where)) is not None), None)
        held = this.typical(metrics.MEMORY_WEIGHTS, where)
        if grown is None or held is None:
            return None
        found.append(grown + held)
    return max(found)


def _why_no_memory(record: Record, scope: str) -> str | None:
    roles = part_names([record]) if scope == "total" else []
    weighed = any(m.metric == metrics.MEMORY_WEIGHTS.id for m in record.measurements)
    for where in [Scope.of(PART, role) for role in roles] or [Scope.parse(scope)]:
        for needed in (metrics.MEMORY_WEIGHTS, *_GROWTH):
            found = find(record, needed, where)
            if found is not None and found.unavailable:
                return found.unavailable
        if weighed and where != scope and find(record, metrics.MEMORY_WEIGHTS, where) is None:
            return f"{where.path} exposes no torch module, so the size of its weights is unknown"
    return None


def _quotient(above: Metric, below: Metric, factor: float = 1.0) -> Formula:
    """One metric over another; the one below may be known for the whole call alone."""

    def quotient(this: Round, scope: str) -> float | None:
        top = this.typical(above, scope)
        bottom = this.typical(below, "total" if below.id in _ONLY_TOTAL else scope)
        return factor * top / bottom if top is not None and bottom else None

    return quotient


def _utilisation(work: Sequence[Metric], peak: Metric | None) -> Formula:
    """Work of a call over its time, as a share of the peak where one is given."""

    def utilisation(this: Round, scope: str) -> float | None:
        done = [amount for metric in work if (amount := this.typical(metric, scope)) is not None]
        latency = this.typical(metrics.LATENCY, scope)
        best = 1.0 if peak is None else this.typical(peak)
        return sum(done) / latency / best if done and latency and best else None

    return utilisation


def _launch_bound(this: Round, scope: str) -> float | None:
    """Latency over the GPU's busy time, from whichever meter took it."""
    latency, busy = this.typical(metrics.LATENCY, scope), this.typical(metrics.TIME_GPU, scope)
    if busy is None and scope == "total":
        busy = this.typical(metrics.TIME_BUSY, GPU)
    return latency / busy if latency is not None and busy else None


def _floor(this: Round, scope: str) -> float | None:
    cells, padded = this.typical(metrics.CELLS), this.typical(metrics.CELLS_PADDED)
    if scope != "total" or cells is None or padded is None or _PRUNED in this.record.case.subject.source:
        return None
    return floor_s(
        this.record.case.axes,
        cells=cells,
        padded=padded,
        bytes_per_s=this.typical(metrics.PEAK_BANDWIDTH),
        flop_per_s=this.typical(metrics.PEAK_FLOPS),
    )


def _above_floor(this: Round, scope: str) -> float | None:
    time, least = this.typical(metrics.LATENCY), _floor(this, scope)
    return time / least if time is not None and least is not None and least > 0 else None


def _module_mfu(this: Round, scope: str) -> Value | None:
    share, latency = ratio_of_round(this, metrics.MODULE_SHARE, scope), this.typical(metrics.LATENCY)
    done = [amount for metric in _FLOPS if (amount := this.typical(metric, scope)) is not None]
    best = this.typical(metrics.PEAK_FLOPS)
    if share is None or not share[0] or not latency or not done or not best:
        return None
    return sum(done) / (share[0] / 100 * latency) / best, share[1]


def _score(metric: Metric) -> Derive:
    def score(this: Round, scope: str) -> Value | None:
        rows = scores.score_rows([this.record], metric) if scope == "total" else ()
        value = scores.score_of(rows, metric)
        return (value, len(rows)) if value is not None else None

    return score


@dataclass(frozen=True, kw_only=True)
class _Derivation:
    derive: Derive
    needs: tuple[Metric, ...]


def _of(formula: Formula, *needs: Metric, calls_of: Metric | None = metrics.LATENCY) -> _Derivation:
    """A figure whose samples are the values of `calls_of`; a single one without it."""

    def derive(this: Round, scope: str) -> Value | None:
        value = formula(this, scope)
        if value is None:
            return None
        return value, 1 if calls_of is None else len(this.values(calls_of, scope))

    return _Derivation(derive=derive, needs=needs)


def _ratio(metric: Metric, *needs: Metric) -> _Derivation:
    return _Derivation(derive=lambda this, scope: ratio_of_round(this, metric, scope), needs=needs)


_ONLY_TOTAL = {m.id for m in (metrics.AUDIO_SECONDS, metrics.TOKENS, metrics.PEAK_FLOPS, metrics.PEAK_BANDWIDTH)}
_AMOUNTS = {
    metrics.RTF.id: metrics.AUDIO_SECONDS,
    metrics.RTFX.id: metrics.AUDIO_SECONDS,
    metrics.THROUGHPUT.id: metrics.ITEMS,
}
_FLOPS = (metrics.FLOPS, metrics.FLOPS_BACKWARD)
_GROWTH = (metrics.MEMORY_CPU_PEAK, metrics.MEMORY_CUDA_GROWTH)
_MFU = _utilisation(_FLOPS, metrics.PEAK_FLOPS)
_MOVED = (metrics.BYTES_MOVED,)
_DERIVED: dict[str, _Derivation] = {
    metrics.RTF.id: _of(_rtf, metrics.LATENCY, metrics.AUDIO_SECONDS),
    metrics.RTFX.id: _of(_rtfx, metrics.LATENCY, metrics.AUDIO_SECONDS),
    metrics.LATENCY_PER_TOKEN.id: _of(_per_token, metrics.LATENCY, metrics.TOKENS),
    metrics.MEMORY_NEEDED.id: _of(_memory_needed, metrics.MEMORY_WEIGHTS, calls_of=None),
    metrics.THROUGHPUT.id: _of(_throughput, metrics.LATENCY),
    metrics.FLOPS_PER_AUDIO_SECOND.id: _of(
        _quotient(metrics.FLOPS, metrics.AUDIO_SECONDS), metrics.FLOPS, metrics.AUDIO_SECONDS, calls_of=metrics.FLOPS
    ),
    metrics.FLOPS_PER_TOKEN.id: _of(_quotient(metrics.FLOPS, metrics.TOKENS), metrics.FLOPS, calls_of=metrics.FLOPS),
    metrics.MFU.id: _of(_MFU, metrics.FLOPS, metrics.LATENCY, metrics.PEAK_FLOPS),
    metrics.BANDWIDTH.id: _of(_utilisation(_MOVED, None), metrics.FLOPS, metrics.LATENCY),
    metrics.BANDWIDTH_SHARE.id: _of(
        _utilisation(_MOVED, metrics.PEAK_BANDWIDTH), metrics.FLOPS, metrics.LATENCY, metrics.PEAK_BANDWIDTH
    ),
    metrics.MODULE_SHARE.id: _ratio(metrics.MODULE_SHARE, metrics.TIME_MODULE),
    metrics.MODULE_CALLS.id: _of(
        lambda this, scope: modules.calls(this.record, scope), metrics.TIME_MODULE, calls_of=None
    ),
    metrics.MODULE_MFU.id: _Derivation(
        derive=_module_mfu, needs=(metrics.TIME_MODULE, metrics.FLOPS, metrics.LATENCY, metrics.PEAK_FLOPS)
    ),
    metrics.PADDING_WASTE.id: _of(
        _waste(metrics.AUDIO_SECONDS, metrics.PADDED_SECONDS),
        metrics.PADDED_SECONDS,
        metrics.AUDIO_SECONDS,
        calls_of=metrics.AUDIO_SECONDS,
    ),
    metrics.CELL_WASTE.id: _of(
        _waste(metrics.CELLS, metrics.CELLS_PADDED), metrics.CELLS_PADDED, metrics.CELLS, calls_of=metrics.CELLS
    ),
    metrics.FLOOR.id: _of(_floor, metrics.CELLS, metrics.PEAK_BANDWIDTH, calls_of=None),
    metrics.FLOOR_RATIO.id: _of(_above_floor, metrics.LATENCY, metrics.CELLS, metrics.PEAK_BANDWIDTH, calls_of=None),
    metrics.OPERATOR_CALLS.id: _of(
        lambda this, scope: operator_calls(this.record, scope), metrics.TIME_OPERATOR, calls_of=None
    ),
    metrics.OPERATOR_SHARE.id: _ratio(metrics.OPERATOR_SHARE, metrics.TIME_OPERATOR),
    metrics.LAUNCH_BOUND.id: _of(_launch_bound, metrics.LATENCY, metrics.TIME_GPU),
    metrics.GPU_IDLE.id: _ratio(metrics.GPU_IDLE, metrics.TIME_SPLIT),
    metrics.RTF_CPU.id: _ratio(metrics.RTF_CPU, metrics.TIME_BUSY, metrics.AUDIO_SECONDS),
    metrics.RTF_GPU.id: _ratio(metrics.RTF_GPU, metrics.TIME_BUSY, metrics.AUDIO_SECONDS),
    **{
        metric.id: _Derivation(derive=_score(metric), needs=(*scores.RULES[metric.id].counts, metrics.ANSWERED))
        for metric in (metrics.WER, metrics.CER, metrics.BLEU, metrics.CHRF, metrics.COMPLETENESS)
    },
    **{
        per_hour.id: _of(
            _quotient(energy, metrics.AUDIO_SECONDS, _HOUR_S), energy, metrics.AUDIO_SECONDS, calls_of=energy
        )
        for energy, per_hour in metrics.ENERGY_PER_AUDIO_HOUR.items()
    },
}
"""How each derived metric is made, by its id."""
