"""Is NEW slower than BASE? Ratios over rounds with an interval, and a verdict that says when it cannot tell.

Cases measured together are compared by adjacent pairs, whose ratio varies less than half as much as that of independent
rounds; others by Welch's t on the logarithms of round figures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, variance
from typing import Any, Literal

from speechmeter.analysis.derived import round_value
from speechmeter.analysis.estimate import Estimate, estimate, t_quantile
from speechmeter.analysis.quality import DIFFERENCES, Difference, paired_difference
from speechmeter.core.metrics import Metric
from speechmeter.core.types import FAILED, Case, Record

Word = Literal["SLOWER", "FASTER", "MORE", "LESS", "SAME", "CANNOT TELL", "FAILED"]

_NEIGHBOURS = 8
"""Two measurements of one round count as adjacent up to this distance in the run's sequence."""
_MOST_ROUNDS = 1000


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What was found for one cell. `ratio` is NEW / BASE; `rounds_to_settle` how many more rounds would decide."""

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


def verdict(
    base: Sequence[Record],
    new: Sequence[Record],
    metric: Metric,
    min_effect: float,
    *,
    together: bool,
    scope: str = "total",
) -> Verdict:
    """Compare one metric of two cases. `together` says that both come from one run, so that rounds may be paired."""
    return replace(_verdict(base, new, metric, min_effect, together=together, scope=scope), scope=scope)


def _verdict(
    base: Sequence[Record], new: Sequence[Record], metric: Metric, min_effect: float, *, together: bool, scope: str
) -> Verdict:
    old, fresh = estimate(base, metric, scope), estimate(new, metric, scope)
    case = new[0].case
    if fresh is None and old is not None and new[-1].status in FAILED:
        reason = f"{new[-1].status}: {new[-1].reason}"
        return Verdict(case=case, metric=metric, word="FAILED", regression=True, base=old, new=None, reason=reason)
    if old is None or fresh is None:
        side = "BASE" if old is None else "NEW"
        return _undecided(case, metric, old, fresh, f"{side} has no {metric.name}")
    if metric.id in DIFFERENCES:
        return _by_utterance(case, old, fresh, paired_difference(new, base, metric), min_effect)
    if metric.exact:
        return _exact(case, metric, old, fresh)
    sides = [_figures(records, metric, scope) for records in (base, new)]
    if any(value <= 0 for side in sides for value in side):
        return replace(_undecided(case, metric, old, fresh, "a figure of 0 or less has no ratio"), ratio=None)
    pairs = _pairs(base, new, metric, scope) if together else []
    paired = len(pairs) >= min(old.rounds, fresh.rounds) and len(pairs) > 0
    logs = _Difference.paired(pairs) if paired else _Difference.independent(*(list(map(math.log, s)) for s in sides))
    if logs is None:
        few = min(old.rounds, fresh.rounds)
        return _undecided(
            case, metric, old, fresh, f"{few} round has no spread between processes; run more rounds", paired
        )
    return _judged(case, metric, old, fresh, logs, min_effect, paired)


@dataclass(frozen=True, kw_only=True)
class _Difference:
    """Mean difference of logarithms, its standard error and degrees of freedom, and the rounds behind it."""

    mean: float
    error: float
    degrees: float
    rounds: int

    @classmethod
    def paired(cls, pairs: Sequence[tuple[float, float]]) -> _Difference | None:
        """From (base, new) of adjacent measurements; None for a single pair."""
        logs = [math.log(new / base) for base, new in pairs]
        if len(logs) < 2:
            return None
        error = math.sqrt(variance(logs) / len(logs))
        return cls(mean=fmean(logs), error=error, degrees=len(logs) - 1, rounds=len(logs))

    @classmethod
    def independent(cls, base: Sequence[float], new: Sequence[float]) -> _Difference | None:
        """Welch's: None when a side has a single round."""
        if len(base) < 2 or len(new) < 2:
            return None
        parts = [variance(side) / len(side) for side in (base, new)]
        total = sum(parts)
        spread = sum(p**2 / (len(side) - 1) for p, side in zip(parts, (base, new), strict=True))
        degrees = total**2 / spread if spread > 0 else float(len(base) + len(new) - 2)
        return cls(
            mean=fmean(new) - fmean(base), error=math.sqrt(total), degrees=degrees, rounds=min(len(base), len(new))
        )

    def half_width(self, rounds: int | None = None) -> float:
        """Of the 95 % interval, as it is or as it would be with another number of rounds."""
        scale = 1.0 if rounds is None else rounds / self.rounds
        degrees = max(1, math.floor(self.degrees * scale))
        return t_quantile(degrees) * self.error / math.sqrt(scale)


def _judged(
    case: Case, metric: Metric, old: Estimate, fresh: Estimate, logs: _Difference, min_effect: float, paired: bool
) -> Verdict:
    edge, half = math.log1p(min_effect), logs.half_width()
    low, high = logs.mean - half, logs.mean + half
    more: int | None = None
    reason = ""
    if abs(logs.mean) > edge and (low > 0 or high < 0):
        word = word_of_change(metric, logs.mean)
    elif -edge <= low and high <= edge:
        word = "SAME"
    else:
        word = "CANNOT TELL"
        more = _rounds_to_settle(logs, edge)
        reason = f"about {more} more rounds would settle it" if more else f"over {_MOST_ROUNDS} rounds would be needed"
    return Verdict(
        case=case,
        metric=metric,
        word=word,
        regression=word not in ("SAME", "CANNOT TELL") and is_worse(metric, logs.mean),
        base=old,
        new=fresh,
        ratio=math.exp(logs.mean),
        low=math.exp(low),
        high=math.exp(high),
        paired=paired,
        rounds=logs.rounds,
        reason=reason,
        rounds_to_settle=more,
    )


def independent_ratio(base: Sequence[float], new: Sequence[float]) -> tuple[float, float | None, float | None]:
    """(NEW / BASE, its bounds at 95 %) of independent logarithms by Welch's t; no bounds where a side is single."""
    found = _Difference.independent(base, new)
    if found is None:
        return math.exp(fmean(new) - fmean(base)), None, None
    half = found.half_width()
    return math.exp(found.mean), math.exp(found.mean - half), math.exp(found.mean + half)


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


def _rounds_to_settle(logs: _Difference, edge: float) -> int | None:
    """How many rounds beyond these give a verdict, if mean and spread stay as they are."""
    for rounds in range(logs.rounds + 1, _MOST_ROUNDS):
        half = logs.half_width(rounds)
        differs = abs(logs.mean) > edge and half < abs(logs.mean)
        if differs or abs(logs.mean) + half <= edge:
            return rounds - logs.rounds
    return None


def _by_utterance(case: Case, old: Estimate, fresh: Estimate, found: Difference, min_effect: float) -> Verdict:
    """A score is compared over the utterances that both sides have: rounds do not vary it."""
    metric, change = old.metric, found.estimate
    if change is not None and (found.order == "same" or old.value == fresh.value == 0):
        return Verdict(
            case=case, metric=metric, word="SAME", regression=False, base=old, new=fresh,
            ratio=1.0 if old.value else None, paired=True, reason=_utterances(change),
        )  # fmt: skip
    if change is None or change.low is None or change.high is None:
        return _undecided(case, metric, old, fresh, found.reason)
    edge = min_effect * old.value  # of a BASE of 0 any change counts, and there is no ratio
    word: Word = "CANNOT TELL"
    if abs(change.value) > edge and (change.low > 0 or change.high < 0):
        word = "MORE" if change.value > 0 else "LESS"
    elif -edge <= change.low and change.high <= edge:
        word = "SAME"
    reason = "more utterances would settle it" if word == "CANNOT TELL" else ""
    return Verdict(
        case=case, metric=metric, word=word, regression=word == _worse(metric), base=old, new=fresh,
        ratio=_over(change.value, old), low=_over(change.low, old), high=_over(change.high, old),
        paired=True, reason="; ".join(filter(None, [_utterances(change), reason])),
    )  # fmt: skip


def _over(change: float, old: Estimate) -> float | None:
    return 1 + change / old.value if old.value else None


def _utterances(change: Estimate) -> str:
    return f"{change.samples_per_round} utterances of both"


def _worse(metric: Metric) -> Word:
    return "LESS" if metric.direction == "higher" else "MORE"


def _exact(case: Case, metric: Metric, old: Estimate, fresh: Estimate) -> Verdict:
    same = old.value == fresh.value
    word: Word = "SAME" if same else "MORE" if fresh.value > old.value else "LESS"
    ratio = fresh.value / old.value if old.value else None
    return Verdict(
        case=case, metric=metric, word=word, regression=word == _worse(metric), base=old, new=fresh, ratio=ratio,
        rounds=min(old.rounds, fresh.rounds), reason="counted, not sampled",
    )  # fmt: skip


def _undecided(
    case: Case, metric: Metric, old: Estimate | None, fresh: Estimate | None, reason: str, paired: bool = False
) -> Verdict:
    ratio = fresh.value / old.value if old and fresh and old.value else None
    return Verdict(
        case=case, metric=metric, word="CANNOT TELL", regression=False, base=old, new=fresh, ratio=ratio,
        rounds=min(old.rounds if old else 0, fresh.rounds if fresh else 0), reason=reason, paired=paired,
    )  # fmt: skip


def _pairs(base: Sequence[Record], new: Sequence[Record], metric: Metric, scope: str) -> list[tuple[float, float]]:
    """(base, new) of the rounds in which both were measured next to each other."""
    others = {record.round: record for record in new}
    pairs = []
    for record in base:
        partner = others.get(record.round)
        if partner is None or abs(partner.sequence - record.sequence) > _NEIGHBOURS:
            continue
        values = round_value(record, metric, scope, base), round_value(partner, metric, scope, new)
        if values[0] is not None and values[1] is not None:
            pairs.append((values[0][0], values[1][0]))
    return pairs


def _figures(records: Sequence[Record], metric: Metric, scope: str) -> list[float]:
    """One figure a round that has one."""
    return [found[0] for record in records if (found := round_value(record, metric, scope, records)) is not None]


CODE_FACTS = ("git", "packages", "python")
"""Facts that two environments may differ in when their code is what is compared; they are named beside the verdict."""


def case_differences(base: Case, new: Case, ignored: Sequence[str]) -> list[str]:
    """How two cases of one cell differ in protocol or axes, in words; empty when they may be compared."""
    pairs: list[tuple[str, Any, Any]] = [
        (name, base.axes.get(name), new.axes.get(name))
        for name in dict.fromkeys([*base.axes, *new.axes])
        if name not in ignored
    ]
    pairs += [
        (name, base.protocol.get(name), new.protocol.get(name))
        for name in dict.fromkeys([*base.protocol, *new.protocol])
    ]
    pairs.append(("workload", base.workload.to_json(), new.workload.to_json()))
    return [f"{name}: {old!r} in BASE, {fresh!r} in NEW" for name, old, fresh in pairs if old != fresh]


def environment_differences(
    base: Mapping[str, Any], new: Mapping[str, Any], sides: tuple[str, str] = ("in BASE", "in NEW")
) -> tuple[list[str], list[str]]:
    """(differences of the machine, differences of the code) between the facts of two environments."""
    machine: list[str] = []
    code: list[str] = []
    for name in dict.fromkeys([*base, *new]):
        texts = _changes(name, base.get(name), new.get(name), sides)
        (code if name in CODE_FACTS else machine).extend(texts)
    return machine, code


def _changes(name: str, old: Any, fresh: Any, sides: tuple[str, str]) -> list[str]:
    """What differs, part by part where both are mappings."""
    if isinstance(old, dict) and isinstance(fresh, dict):
        keys = dict.fromkeys([*old, *fresh])
        return [text for key in keys for text in _changes(f"{name} {key}", old.get(key), fresh.get(key), sides)]
    return [] if old == fresh else [f"{name}: {old!r} {sides[0]}, {fresh!r} {sides[1]}"]


def overall_exit(verdicts: Sequence[Verdict]) -> int:
    """1 with a regression, 3 when something cannot be told, else 0."""
    if any(v.regression for v in verdicts):
        return 1
    return 3 if not verdicts or any(v.word == "CANNOT TELL" for v in verdicts) else 0
