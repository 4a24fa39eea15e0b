"""Systems against each other: paired differences of their scores, and the front of quality against cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from speechmeter.analysis import scores
from speechmeter.analysis.estimate import Estimate, estimate
from speechmeter.analysis.intervals import NORMAL_975
from speechmeter.analysis.live.change import paired_change
from speechmeter.analysis.live.samples import is_live
from speechmeter.analysis.orders import Difference, Order, no_difference
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.quality import UTTERANCES
from speechmeter.core.types import Record

_NO_WIDTH = 1e-12
DIFFERENCES: dict[str, Metric] = {
    metrics.WER.id: metrics.WER_DIFFERENCE,
    metrics.CER.id: metrics.CER_DIFFERENCE,
    metrics.BLEU.id: metrics.BLEU_DIFFERENCE,
    metrics.CHRF.id: metrics.CHRF_DIFFERENCE,
}
"""The metric of a difference, by that of its score."""


@dataclass(frozen=True, kw_only=True)
class System:
    """One point of the front: a case's records, its score and its cost.

    Live systems were measured in one run and heard the same utterances: they are compared by pairs in both.
    """

    name: str
    records: Sequence[Record]
    score: Estimate | None
    cost: Estimate | None


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Whether a system is on the front: off it because of others, or not resolvable against others and why."""

    word: Literal["yes", "no", "not resolvable"]
    others: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()


def paired_difference(first: Sequence[Record], second: Sequence[Record], metric: Metric) -> Difference:
    """The score of the first system minus that of the second, with the bootstrap interval over shared utterances."""
    if scores.imported(first, metric) or scores.imported(second, metric):
        return no_difference(
            "an imported score has no values of single utterances, so the systems cannot be compared "
            "utterance by utterance"
        )
    ours, theirs = counts_by_utterance(first, metric), counts_by_utterance(second, metric)
    shared = [name for name in ours if name in theirs]
    if not ours or not theirs:
        return no_difference(f"{metric.title} was not measured for both systems")
    if not shared:
        return no_difference("the two systems were not measured on the same utterances")
    if _sizes(first, metric, shared) != _sizes(second, metric, shared):
        return no_difference("the two systems have different reference texts or text normalisers")
    rows = tuple(ours[name] for name in shared), tuple(theirs[name] for name in shared)
    values = [scores.score_of(side, metric) for side in rows]
    if values[0] is None or values[1] is None:
        return no_difference("all reference texts of the shared utterances are empty")
    speakers = dict(zip(ours, scores.speakers_of(first), strict=False))
    interval = scores.difference_interval(*rows, metric.id, [speakers.get(name, "") for name in shared])
    low, high = interval or (None, None)
    made = Estimate(
        metric=DIFFERENCES[metric.id], value=values[0] - values[1], low=low, high=high, rounds=1,
        samples_per_round=len(shared), statistic="difference",
    )  # fmt: skip
    if rows[0] == rows[1]:
        return Difference(estimate=made, order="same")
    if low is None or high is None:
        reason = (
            f"an interval needs at least {scores.least_units(metric.id)} shared utterances, but there are {len(shared)}"
        )
        return Difference(estimate=made, order="not resolvable", reason=reason)
    return Difference(estimate=made, order=_order(low, high, 0.0, 0.0, metric))


def standings(systems: Sequence[System], score: Metric) -> list[Standing | None]:
    """Whether each system is on the front of score and cost; None for one that lacks either.

    A system is off the front when another is better in one and better or the same in the other; on it when it is
    better than each other one in score or in cost, or the same in both; else it cannot be resolved.
    """
    return [_standing(one, systems, score) if one.score and one.cost else None for one in systems]


def _standing(one: System, systems: Sequence[System], score: Metric) -> Standing:
    above: list[str] = []
    unclear: list[str] = []
    reasons: dict[str, None] = {}
    for other in systems:
        if other is one or other.score is None or other.cost is None:
            continue
        orders = {order_of_scores(one, other, score), order_of_costs(one, other)}
        if "worse" in orders and orders <= {"worse", "same"}:
            above.append(other.name)
        elif "better" not in orders and orders != {"same"}:
            unclear.append(other.name)
            reasons.update(dict.fromkeys(_unresolved(one, other, score)))
    if above:
        return Standing(word="no", others=tuple(above))
    if not unclear:
        return Standing(word="yes")
    return Standing(word="not resolvable", others=tuple(unclear), reasons=tuple(reasons))


def _unresolved(one: System, other: System, score: Metric) -> list[str]:
    """Why neither score nor cost decides between two systems, in a few words each."""
    assert one.score is not None and other.score is not None
    assert one.cost is not None and other.cost is not None
    found = []
    paired = _paired(one, other, score)
    if paired.estimate is not None and paired.order == "not resolvable":
        found.append(paired.reason or f"the interval of the difference in {score.title} contains 0")
    elif paired.estimate is None and order_of(one.score, other.score) == "not resolvable":
        found.append(_why_unclear(one.score, other.score))
    if order_of_costs(one, other) == "not resolvable":
        found.append(_why_unclear(one.cost, other.cost))
    return found


def _paired(first: System, second: System, metric: Metric) -> Difference:
    """First − second of a score over the utterances that both have."""
    if is_live(metric):
        return paired_change(second.records, first.records, metric, together=True)
    return paired_difference(first.records, second.records, metric)


def _why_unclear(first: Estimate, second: Estimate) -> str:
    for figure in (first, second):
        if figure.low is None:
            few = "one round" if figure.rounds == 1 and not figure.metric.exact else "too few utterances"
            return f"{few}: no interval of {figure.metric.title}"
    return f"intervals of {first.metric.title} overlap"


def order_of_scores(first: System, second: System, metric: Metric) -> Order:
    """By the paired difference where both have the same utterances; else by whether their intervals overlap."""
    paired = _paired(first, second, metric)
    if paired.estimate is not None:
        return paired.order
    return order_of(first.score, second.score)


def order_of_costs(first: System, second: System) -> Order:
    """By the paired difference of what is live; else by whether the intervals of both overlap."""
    cost = first.cost
    if cost is None or not is_live(cost.metric):
        return order_of(first.cost, second.cost)
    return paired_change(second.records, first.records, cost.metric, cost.statistic, together=True).order


def order_of(first: Estimate | None, second: Estimate | None) -> Order:
    """Of two figures of one metric: better or worse when their intervals do not overlap."""
    if first is None or second is None or None in (first.low, first.high, second.low, second.high):
        return "not resolvable"
    assert first.low is not None and first.high is not None and second.low is not None and second.high is not None
    return _order(first.low, first.high, second.low, second.high, first.metric)


def _order(low: float, high: float, other_low: float, other_high: float, metric: Metric) -> Order:
    if low <= other_high and other_low <= high:
        return "not resolvable"
    return "better" if (low > other_high) is (metric.direction == "higher") else "worse"


def counts_by_utterance(records: Sequence[Record], metric: Metric) -> dict[tuple[str, int], tuple[float, ...]]:
    """The counts of each utterance by its id, and by how often that id came before."""
    names = _names(records)
    rows = scores.score_rows(records, metric)
    return dict(zip(names, rows, strict=True)) if len(names) == len(rows) else {}


def _names(records: Sequence[Record]) -> list[tuple[str, int]]:
    found = (record.find(metrics.ANSWERED.id) for record in records)
    ids = next((m.notes.get(UTTERANCES, ()) for m in found if m is not None and m.values), ())
    seen: Counter[str] = Counter()
    names = []
    for name in map(str, ids):
        names.append((name, seen[name]))
        seen[name] += 1
    return names


def _sizes(records: Sequence[Record], metric: Metric, shared: Sequence[tuple[str, int]]) -> list[tuple[float, ...]]:
    """What the references alone give to the counts: it must be the same on both sides. chrF has no such count."""
    columns = () if metric.id == metrics.CHRF.id else (1,)
    rows = counts_by_utterance(records, metric)
    return [tuple(rows[name][column] for column in columns) for name in shared]


def tails(change: Estimate) -> tuple[float, float]:
    """One-sided p-values of (more, less) for a difference, read off its interval: small where 0 is far outside."""
    from scipy.special import ndtr

    if change.low is None or change.high is None:
        return 1.0, 1.0
    below, above = (max(side, _NO_WIDTH) for side in (change.value - change.low, change.high - change.value))
    return float(ndtr(-NORMAL_975 * change.value / below)), float(ndtr(NORMAL_975 * change.value / above))


def best_score(groups: Sequence[Sequence[Record]]) -> Metric | None:
    """The score that a front is drawn by: the first of WER, CER, BLEU and chrF that some system has."""
    asked = (metrics.WER, metrics.CER, metrics.BLEU, metrics.CHRF)
    return next((metric for metric in asked if any(estimate(group, metric) for group in groups)), None)


def extent_of(records: Sequence[Record]) -> tuple[int, float | None]:
    """(utterances, hours of audio) of calls with one utterance each; None where not every duration is known."""
    seconds = [m.values for record in records if (m := record.find(metrics.AUDIO_SECONDS.id)) is not None and m.values]
    return len(_names(records)), sum(seconds[0]) / 3600 if seconds else None


def score_notes(records: Sequence[Record]) -> list[str]:
    """What the meter says of a case's scores, such as how many utterances have no reference."""
    found = (record.find(metrics.ANSWERED.id) for record in records)
    return list(dict.fromkeys(str(note) for m in found if m is not None for note in m.notes.get("notes", ())))
