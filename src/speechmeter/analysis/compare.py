"""Is NEW slower than BASE? The ratio of one cell with an interval, and a verdict that says when it cannot tell.

Cases measured together are compared by adjacent pairs, whose ratio varies less than half as much as that of independent
rounds; others by Welch's t on the logarithms of round figures. Of what adds up the ratio is that of the means. `family`
has what many cells say together, and the exit code.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean, median
from typing import Literal

from speechmeter.analysis import orders, quality
from speechmeter.analysis.derived import round_value
from speechmeter.analysis.difference import Difference, Variance, independent, paired
from speechmeter.analysis.estimate import Estimate, estimate
from speechmeter.analysis.intervals import t_quantile
from speechmeter.analysis.live.change import paired_change
from speechmeter.analysis.live.figures import TYPICAL
from speechmeter.analysis.live.samples import CONVERSATIONS, is_live
from speechmeter.analysis.means import linearised_logs
from speechmeter.analysis.warnings import failed_rounds, in_words, kind_of
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Case, Record

Word = Literal["SLOWER", "FASTER", "MORE", "LESS", "SAME", "CANNOT TELL", "FAILED", "MISSING"]

ALLOWANCE = 0.05
"""What two runs at different times may differ by without any change, where no earlier runs say how much."""
_SIDE_BY_SIDE = 8
"""Two measurements of one round are paired when at most this many turns of their lane apart: what is further apart may
have seen another state of the machine."""
_MOST_ROUNDS = 1000
_FEWEST_RUNS = 5
"""Fewer runs say nothing about their spread."""


class Lasting(float):
    """A smallest effect that is a time in seconds, and not a share of BASE."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Verdict:
    """What was found for one cell. `ratio` is NEW / BASE; `rounds_to_settle` how many more rounds would decide.

    Live metrics have a `change` instead, NEW − BASE in their own unit; `statistic` is the percentile that it is of.

    `tails` are the one-sided p-values of (worse, better), None where nothing varies. `corrected` says that the word
    does not hold once the other cells are taken into account. `shown` is the smallest change, as a share, that would
    have been noticed among them.
    """

    case: Case
    metric: Metric
    word: Word
    regression: bool
    base: Estimate | None
    new: Estimate | None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    paired: bool = False
    rounds: int = 0
    reason: str = ""
    rounds_to_settle: int | None = None
    scope: str = "total"
    min_effect: float = 0.05
    difference: Difference | None = None
    tails: tuple[float, float] | None = None
    corrected: bool = False
    shown: float | None = None
    change: Estimate | None = None
    statistic: str = ""

    def __repr__(self) -> str:
        ratio = "" if self.ratio is None else f", ratio={self.ratio:.4g}"
        return f"Verdict({self.case.label!r}, {self.metric.name}, {self.word!r}{ratio})"

    @property
    def text(self) -> str:
        """The word as it is read: `SLOWER`, or `slower, not after correction`."""
        return f"{self.word.lower()}, not after correction" if self.corrected else self.word


@dataclass(frozen=True, kw_only=True)
class Between:
    """Two runs at different times: `spread` is the variance of what they differ by for no reason, None if unknown."""

    spread: Variance | None = None
    source: str = ""


def between_runs(figures: Sequence[Estimate]) -> Between:
    """What two runs of one case differ by, beyond what their rounds show, from its figures in earlier runs by time.

    Unknown with fewer than five runs.
    """
    if len(figures) < _FEWEST_RUNS:
        return Between()
    steps = [abs(math.log(b.value / a.value)) for a, b in pairwise(figures)]
    # the median of neighbouring runs, as a normal distribution has it: few changes of the code do not disturb it
    one = 1.4826 * median(steps) / math.sqrt(2)
    inside = [
        0.0 if figure.half_width is None or figure.rounds < 2 else figure.half_width / t_quantile(figure.rounds - 1)
        for figure in figures
    ]
    beyond = max(0.0, one**2 - fmean(error**2 for error in inside))
    return Between(spread=Variance(value=2 * beyond, degrees=max(1.0, len(steps) / 2)))


def verdict(
    base: Sequence[Record],
    new: Sequence[Record],
    metric: Metric,
    min_effect: float,
    *,
    together: bool,
    scope: str = "total",
    between: Between | None = None,
    statistic: str = "",
) -> Verdict:
    """Compare one metric of two cases; of a live one another percentile than the median, where `statistic` names it.

    `together` says that both come from one run, so that rounds may be paired; `between` is given where they come from
    two runs of one machine.
    """
    old, fresh = (estimate(side, metric, scope, statistic or "geomean") for side in (base, new))
    blank = Verdict(
        case=new[0].case, metric=metric, word="CANNOT TELL", regression=False, base=old, new=fresh,
        ratio=fresh.value / old.value if old and fresh and old.value and not is_live(metric) else None,
        rounds=min(old.rounds if old else 0, fresh.rounds if fresh else 0), scope=scope, min_effect=min_effect,
        statistic=statistic,
    )  # fmt: skip
    if old is None or fresh is None:
        side, records = ("BASE", base) if old is None else ("NEW", new)
        why = next((f": {text}" for record in records if (text := _absent(record, metric, scope))), "")
        found = replace(blank, reason=f"{metric.name} is missing in {side}{why}")
    elif is_live(metric):
        found = _by_conversation(blank, old, fresh, base, new, together=together)
    elif metric.id in quality.DIFFERENCES:
        found = _by_utterance(blank, old, fresh, quality.paired_difference(new, base, metric))
    elif metric.exact:
        word: Word = "SAME" if old.value == fresh.value else "MORE" if fresh.value > old.value else "LESS"
        found = replace(
            blank, word=word, regression=word == _worse(metric), reason="an exact count, which has no interval"
        )
    else:
        found = _by_rounds(blank, old, fresh, base, new, together=together, between=between)
    return _with_failures(found, base, new)


def missing(base: Sequence[Record], metric: Metric, min_effect: float) -> Verdict:
    """The verdict on a cell that only BASE has."""
    return Verdict(
        case=base[0].case, metric=metric, word="MISSING", regression=False, base=estimate(base, metric), new=None,
        reason="this case was not measured in NEW", min_effect=min_effect,
    )  # fmt: skip


def _absent(record: Record, metric: Metric, scope: str) -> str:
    """Why a record does not hold a metric, as far as it says."""
    found = record.find(metric.id, scope)
    return record.reason if found is None else found.unavailable or ""


def _by_rounds(
    blank: Verdict,
    old: Estimate,
    fresh: Estimate,
    base: Sequence[Record],
    new: Sequence[Record],
    *,
    together: bool,
    between: Between | None,
) -> Verdict:
    """Compare the logarithms of round figures: by pairs where enough rounds were measured side by side."""
    metric, scope = blank.metric, blank.scope
    pairs = _adjacent(base, new, metric, scope) if together else {}
    is_paired = len(pairs) >= min(old.rounds, fresh.rounds) and len(pairs) > 0
    figures = [
        {round_: pair[side] for round_, pair in pairs.items()} if is_paired else _figures(records, metric, scope)
        for side, records in enumerate((base, new))
    ]
    base_logs, new_logs = (_logs(metric, values) for values in figures)
    if base_logs is None or new_logs is None:
        return replace(blank, ratio=None, reason="a round has a value of 0 or less, so no ratio can be computed")
    # the rounds of each first stage, from which the number of all rounds was chosen
    pilots = [next((r.pilot.rounds for r in side if r.pilot is not None), None) for side in (base, new)]
    if is_paired:
        logs = paired(base_logs, new_logs, max(filter(None, pilots), default=None))
    else:
        logs = independent(base_logs, new_logs, (pilots[0], pilots[1]))
    if logs is None:
        reason = "with only 1 round, there is no interval; measure more rounds"
        return replace(blank, paired=is_paired, reason=reason)
    if between is not None and not is_paired:
        logs = replace(logs, offset=between.spread, allowance=math.log1p(ALLOWANCE) if between.spread is None else 0.0)
    found = judged(blank.case, metric, logs, blank.min_effect, is_paired=is_paired)
    return replace(found, base=old, new=fresh, scope=scope)


def judged(case: Case, metric: Metric, logs: Difference, min_effect: float, *, is_paired: bool = True) -> Verdict:
    """The verdict on a difference of logarithms, without the figures of the two sides."""
    edge = math.log1p(min_effect)
    low, high = logs.bounds
    more: int | None = None
    reason = ""
    word: Word = "CANNOT TELL"
    if _differs(logs, edge):
        word = word_of_change(metric, logs.mean)
    elif is_same(logs, edge):
        word = "SAME"
    elif logs.allowance and (low > 0 or high < 0):
        reason = allowed(logs)
    else:
        more = _rounds_to_settle(logs, edge)
        words = "1 more round" if more == 1 else f"{more} more rounds"
        reason = f"measure about {words} to decide" if more else f"more than {_MOST_ROUNDS} rounds are needed to decide"
    worse = 1.0 if is_worse(metric, 1.0) else -1.0
    return Verdict(
        case=case, metric=metric, word=word, base=None, new=None,
        regression=word not in ("SAME", "CANNOT TELL") and is_worse(metric, logs.mean),
        ratio=math.exp(logs.mean), low=math.exp(low), high=math.exp(high),
        paired=is_paired, rounds=logs.rounds, reason=reason, rounds_to_settle=more, min_effect=min_effect,
        difference=logs, tails=(logs.tail(worse), logs.tail(-worse)),
    )  # fmt: skip


def _differs(logs: Difference, edge: float) -> bool:
    """Whether the change is more than the smallest that counts, and more than chance and the allowance explain."""
    return abs(logs.mean) > edge and abs(logs.mean) - logs.half_width > logs.allowance


def allowed(logs: Difference) -> str:
    """Why a difference that is seen may be none."""
    return f"two runs at different times can differ by {math.expm1(logs.allowance):.0%} even if the code is the same"


def is_same(logs: Difference, edge: float) -> bool:
    """Whether the interval lies within the smallest effect that counts.

    A difference that is seen between two runs at different times may come from the times, and may hide a change.
    So the allowance, too, must fit within the smallest effect.
    """
    low, high = logs.bounds
    room = 0.0 if low <= 0 <= high else logs.allowance
    return -edge <= low - room and high + room <= edge


def is_worse(metric: Metric, log_ratio: float) -> bool:
    """Whether a change in this direction is a regression."""
    return (log_ratio > 0) is (metric.direction != "higher")


def word_of_change(metric: Metric, log_ratio: float) -> Word:
    """What a change in this direction is called."""
    grew = log_ratio > 0
    if metric.direction == "higher":
        return "FASTER" if grew else "SLOWER"
    if metric.unit in ("s", "1") and metric.direction == "lower":
        return "SLOWER" if grew else "FASTER"
    return "MORE" if grew else "LESS"


def _rounds_to_settle(logs: Difference, edge: float) -> int | None:
    """How many rounds beyond these give a verdict, if mean and spread stay as they are."""

    def is_settled(rounds: int) -> bool:  # once it is, more rounds keep it so: the interval only narrows
        grown = logs.with_rounds(rounds)
        return _differs(grown, edge) or is_same(grown, edge)

    candidates = range(logs.rounds + 1, _MOST_ROUNDS)
    first = bisect_left(candidates, True, key=is_settled)
    return candidates[first] - logs.rounds if first < len(candidates) else None


def _with_failures(found: Verdict, base: Sequence[Record], new: Sequence[Record]) -> Verdict:
    """A kind of failure that BASE never had is a regression; where both had it, the verdict is CANNOT TELL."""
    before, now = failed_rounds(base), failed_rounds(new)
    if not now:
        note = f"BASE: {in_words(base)}" if before else ""
        return replace(found, reason="; ".join(filter(None, [found.reason, note])))
    if fresh := [kind for kind in now if kind not in before]:
        last = next(record.reason for record in reversed(new) if kind_of(record) in fresh)
        reason = f"{in_words(new)}; BASE never failed with {', '.join(fresh)}: {last}"
        return replace(found, word="FAILED", regression=True, reason=reason, difference=None, tails=None)
    both = f"NEW: {in_words(new)}; BASE: {in_words(base)}"
    reason = f"both runs failed in the same way, so there is nothing to compare: {both}"
    return replace(found, word="CANNOT TELL", regression=False, reason=reason, difference=None, tails=None)


def _by_utterance(blank: Verdict, old: Estimate, fresh: Estimate, found: orders.Difference) -> Verdict:
    """A score is compared over the utterances that both sides have: rounds do not vary it."""
    metric, change = blank.metric, found.estimate
    if change is not None and (found.order == "same" or old.value == fresh.value == 0):
        reason = _utterances(change, old, fresh)
        return replace(blank, word="SAME", ratio=1.0 if old.value else None, rounds=0, paired=True, reason=reason)
    if change is None or change.low is None or change.high is None:
        return replace(blank, reason=found.reason)
    edge = blank.min_effect * old.value  # of a BASE of 0 any change counts, and there is no ratio
    word: Word = "CANNOT TELL"
    if abs(change.value) > edge and (change.low > 0 or change.high < 0):
        word = "MORE" if change.value > 0 else "LESS"
    elif -edge <= change.low and change.high <= edge:
        word = "SAME"

    def ratio(difference: float) -> float | None:
        return max(0.0, 1 + difference / old.value) if old.value else None

    tails = quality.tails(change)
    reason = "measure more utterances to decide" if word == "CANNOT TELL" else ""
    return replace(
        blank, word=word, regression=word == _worse(metric), rounds=0, paired=True,
        ratio=ratio(change.value), low=ratio(change.low), high=ratio(change.high),
        reason="; ".join(filter(None, [_utterances(change, old, fresh), reason])),
        tails=tails if _worse(metric) == "MORE" else tails[::-1],
    )  # fmt: skip


def _by_conversation(
    blank: Verdict, old: Estimate, fresh: Estimate, base: Sequence[Record], new: Sequence[Record], *, together: bool
) -> Verdict:
    """A live metric is compared over the utterances that both sides heard, by their difference."""
    metric = blank.metric
    found = paired_change(base, new, metric, blank.statistic or TYPICAL, together=together)
    change = found.estimate
    if change is None or change.low is None or change.high is None:
        return replace(blank, change=change, reason=found.reason, paired=True)
    edge = blank.min_effect if isinstance(blank.min_effect, Lasting) else blank.min_effect * abs(old.value)
    # the time of an answer depends on the state of the machine, its words do not
    room = ALLOWANCE * abs(old.value) if metric.combined == CONVERSATIONS and not together else 0.0
    apart = max(change.low, -change.high)  # how far from 0 the interval is
    word: Word = "CANNOT TELL"
    why = "measure more utterances or rounds to decide"
    if found.order == "same":
        word = "SAME"
    elif abs(change.value) > edge and apart > room:
        word = _word_of_live(metric, change.value)
    elif max(abs(change.low), abs(change.high)) + (room if apart > 0 else 0.0) <= edge:
        word = "SAME"
    elif 0 < apart <= room:
        why = f"two runs at different times can differ by {ALLOWANCE:.0%} even if the code is the same"
    tails = quality.tails(_nearer_zero(change, room))
    reasons = [_utterances(change, old, fresh), found.reason, why if word == "CANNOT TELL" else ""]
    return replace(
        blank, word=word, change=change, paired=True, rounds=0, reason="; ".join(filter(None, reasons)),
        regression=word not in ("SAME", "CANNOT TELL") and is_worse(metric, change.value),
        tails=tails if metric.direction != "higher" else tails[::-1],
    )  # fmt: skip


def _nearer_zero(change: Estimate, room: float) -> Estimate:
    """A difference without what may be no change at all."""
    shift = math.copysign(min(room, abs(change.value)), change.value)
    assert change.low is not None and change.high is not None
    return replace(change, value=change.value - shift, low=change.low - shift, high=change.high - shift)


def _word_of_live(metric: Metric, change: float) -> Word:
    if metric.unit in ("s", "s/s") and metric.direction == "lower":
        return "SLOWER" if change > 0 else "FASTER"
    return "MORE" if change > 0 else "LESS"


def _utterances(change: Estimate, old: Estimate, fresh: Estimate) -> str:
    """Over how many utterances a score was compared, and of how many where a side has others too."""
    shared, sides = change.samples_per_round, (old.samples_per_round, fresh.samples_per_round)
    others = f" (BASE has {sides[0]}, NEW {sides[1]})" if max(sides) > shared else ""
    return f"{shared} {'utterance' if shared == 1 else 'utterances'} in both{others}"


def _worse(metric: Metric) -> Word:
    return "LESS" if metric.direction == "higher" else "MORE"


def _adjacent(
    base: Sequence[Record], new: Sequence[Record], metric: Metric, scope: str
) -> dict[int, tuple[float, float]]:
    """Round → (base, new), of the rounds in which both were measured next to each other."""
    others = {record.round: record for record in new}
    pairs = {}
    for record in base:
        partner = others.get(record.round)
        if partner is None or partner.lane != record.lane or abs(partner.sequence - record.sequence) > _SIDE_BY_SIDE:
            continue
        values = round_value(record, metric, scope, base), round_value(partner, metric, scope, new)
        if values[0] is not None and values[1] is not None:
            pairs[record.round] = (values[0][0], values[1][0])
    return pairs


def _figures(records: Sequence[Record], metric: Metric, scope: str) -> dict[int, float]:
    """Round → its figure, of the rounds that have one."""
    found = ((record.round, round_value(record, metric, scope, records)) for record in records)
    return {round_: value[0] for round_, value in found if value is not None}


def _logs(metric: Metric, values: Mapping[int, float]) -> dict[int, float] | None:
    """The figures of rounds on a logarithmic scale, as the metric is combined over them; None where there is none."""
    if metric.combined == "mean":
        logs = linearised_logs(list(values.values()))
    else:
        logs = [math.log(value) for value in values.values()] if min(values.values()) > 0 else None
    return None if logs is None else dict(zip(values, logs, strict=True))
