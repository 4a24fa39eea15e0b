"""Whether a level of load is within an SLO: the decision rule of a capacity.

Each bound is judged at 95 %, one-sided. A level passes when all are known to be within, fails when one is known to be
beyond, and is undecided otherwise. A share of conversations needs both: enough of them (exact binomial), and rounds
that agree (Student's t), because conversations that wait in one queue are alike. For M/M/4, brackets from within one
long round held the truth in 28 % of searches; from six rounds at each edge, in 40 of 40.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Literal

from speechmeter.analysis.intervals import t_quantile
from speechmeter.analysis.live.levels import slopes
from speechmeter.analysis.live.measure import MISSING, OF, TIMEOUT
from speechmeter.analysis.live.samples import POOLED
from speechmeter.core import metrics
from speechmeter.core.live import TIMEOUT as TIMEOUT_KIND
from speechmeter.core.slo import ALPHA, Bound, Slo
from speechmeter.core.types import Record

Word = Literal["passes", "fails", "undecided"]
LEAST_LATENCIES = 50
"""A probe has to last so many mean delays: a queue near its edge fills slowly."""
_SLOWER = 0.1
"""By more than this share the second half of a probe is slower than its first."""
_LEAST_HALF = 10
"""Conversations in a half; with fewer the halves are not compared."""
_DIGITS = 9


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One bound at one level. `value` is the share of conversations within it, or a mean over rounds, with one-sided
    95 % bounds `low` and `high`. `seen` counts conversations; without a value `reason` says why.
    """

    bound: Bound
    word: Word
    value: float | None
    low: float | None
    high: float | None
    seen: int
    reason: str = ""

    @property
    def is_within(self) -> bool:
        """Whether the value itself is within the limit, whatever is known of it."""
        if self.value is None:
            return False
        return self.value >= self.bound.share if self.bound.share is not None else self.value <= self.bound.limit


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A level. `reasons` say why one that is within every bound does not pass, and what would settle it."""

    word: Word
    judged: tuple[Judged, ...]
    rounds: int
    reasons: tuple[str, ...] = ()

    @property
    def is_within(self) -> bool:
        """What a single round says: every value within its bound, and nothing against the probe."""
        return all(one.is_within for one in self.judged) and not self.reasons

    @property
    def broken(self) -> tuple[Judged, ...]:
        """The bounds that are known to be broken; where none is, those whose value is beyond."""
        known = tuple(one for one in self.judged if one.word == "fails")
        return known or tuple(one for one in self.judged if one.value is not None and not one.is_within)


def verdict(records: Sequence[Record], slo: Slo) -> Verdict:
    """The verdict on the rounds of one level."""
    rounds = [record for record in records if record.find(metrics.LIVE_ANSWERED.id) is not None]
    judged = tuple(judge(rounds, bound) for bound in slo.bounds)
    reasons = tuple(filter(None, (_too_short(rounds, slo), _slower(rounds, slo), _opened_late(rounds, slo))))
    word: Word = "undecided"
    if any(one.word == "fails" for one in judged):
        word = "fails"
    elif all(one.word == "passes" for one in judged) and not reasons:
        word = "passes"
    return Verdict(word=word, judged=judged, rounds=len(rounds), reasons=reasons)


def judge(rounds: Sequence[Record], bound: Bound) -> Judged:
    """One bound over several rounds."""
    counted = [found for record in rounds if (found := _within(record, bound)) is not None]
    if bound.share is not None:
        return _share(bound, counted)
    means = [mean for record in rounds if (mean := _mean(record, bound)) is not None]
    if not means:
        return _unknown(bound, rounds)
    low, high = _ends(means)
    word: Word = "undecided"
    if len(means) > 1 and high <= bound.limit:
        word = "passes"
    elif len(means) > 1 and low > bound.limit:
        word = "fails"
    value = round(fmean(means), _DIGITS)
    return Judged(bound=bound, word=word, value=value, low=low, high=high, seen=len(means))


def _share(bound: Bound, counted: Sequence[tuple[int, int]]) -> Judged:
    assert bound.share is not None
    within, seen = (sum(column) for column in zip(*counted, strict=True)) if counted else (0, 0)
    if not seen:
        return Judged(bound=bound, word="undecided", value=None, low=None, high=None, seen=0, reason=_NO_VALUES)
    low, high = _ends([good / of for good, of in counted])
    least, most = _binomial(within, seen)
    low, high = max(0.0, min(low, least)), min(1.0, max(high, most))
    word: Word = "undecided"
    if len(counted) > 1 and low >= bound.share:
        word = "passes"
    elif len(counted) > 1 and high < bound.share:
        word = "fails"
    return Judged(bound=bound, word=word, value=within / seen, low=low, high=high, seen=seen)


_NO_VALUES = "no conversation has a value"


def _unknown(bound: Bound, rounds: Sequence[Record]) -> Judged:
    found = next((one for record in rounds if (one := record.find(bound.metric.id)) is not None), None)
    reason = _NO_VALUES if found is None else found.unavailable or _NO_VALUES
    return Judged(bound=bound, word="undecided", value=None, low=None, high=None, seen=0, reason=reason)


def _within(record: Record, bound: Bound) -> tuple[int, int] | None:
    """(conversations within the limit, all that count) of a round; a missing answer is not within."""
    if bound.share is None:
        return None
    if bound.on_completeness:
        found = record.find(metrics.LIVE_ANSWERED.id)
        return None if found is None or not found.values else (int(sum(found.values)), len(found.values))
    found = record.find(bound.metric.id)
    if found is None:
        return None
    missing = len(found.notes.get(MISSING, ()))
    good, of = sum(value <= bound.limit for value in found.values), len(found.values) + missing
    return (good, of) if of else None


def _mean(record: Record, bound: Bound) -> float | None:
    found = record.find(bound.metric.id)
    if found is None or not found.values:
        return math.inf if bound.metric == metrics.KEEP_UP and _timed_out(record) else None
    if bound.metric == metrics.KEEP_UP:
        return fmean(slopes(record))
    if bound.metric.combined != POOLED:
        return fmean(found.values)
    scale = 100.0 if bound.metric.unit == "%" else 1.0
    return scale * float(sum(found.notes["above"])) / (float(sum(found.notes["below"])) or 1.0)


def _timed_out(record: Record) -> bool:
    """Whether no text came in time: then there is no slope, and nothing keeps up."""
    found = record.find(metrics.LIVE_ANSWERED.id)
    return found is not None and TIMEOUT_KIND in found.notes.get("errors", ())


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """One-sided 95 % bounds of the mean of several rounds; of a single one the value itself."""
    mean = fmean(values)
    if len(values) < 2 or math.isinf(mean):
        return mean, mean
    half = t_quantile(len(values) - 1, 1 - ALPHA) * stdev(values) / len(values) ** 0.5
    return round(mean - half, _DIGITS), round(mean + half, _DIGITS)


def _binomial(count: int, total: int) -> tuple[float, float]:
    """One-sided exact 95 % bounds of a share (Clopper and Pearson)."""
    from scipy.special import betaincinv

    low = float(betaincinv(count, total - count + 1, ALPHA)) if count else 0.0
    high = float(betaincinv(count + 1, total - count, 1 - ALPHA)) if count < total else 1.0
    return low, high


def _delays(record: Record, slo: Slo) -> list[tuple[int, float]]:
    """(conversation, delay) in the order in which conversations ended; a missing answer took the timeout at least."""
    bound = slo.delay
    found = None if bound is None else record.find(bound.metric.id)
    if found is None:
        return []
    held = list(zip(found.notes.get(OF, range(len(found.values))), found.values, strict=False))
    held += [(int(one), float(found.notes[TIMEOUT])) for one in found.notes.get(MISSING, ())]
    return sorted(held)


def _too_short(rounds: Sequence[Record], slo: Slo) -> str:
    """That a probe did not last as long as a queue needs to fill."""
    for record in rounds:
        delays = [max(0.0, delay) for _, delay in _delays(record, slo)]
        found = record.find(metrics.LIVE_THROUGHPUT.id)
        if not delays or found is None:
            continue
        lasted_s = sum(found.notes.get("below", ()))
        need_s = LEAST_LATENCIES * fmean(delays)
        if lasted_s < need_s:
            return (
                f"a round was under full load for {lasted_s:.3g} s only; at least {need_s:.3g} s are needed "
                f"({LEAST_LATENCIES} times the mean delay); raise `duration` or `turns`"
            )
    return ""


def _opened_late(rounds: Sequence[Record], slo: Slo) -> str:
    """That speakers waited for a connection, by more than the limit of a delay that does not contain it."""
    if slo.delay is None or any(bound.metric == metrics.OPEN_DELAY for bound in slo.bounds):
        return ""
    found = [one for record in rounds if (one := record.find(metrics.OPEN_DELAY.id)) is not None]
    delays = sorted(value for one in found for value in one.values)
    late = [value for value in delays if value > slo.delay.limit]
    if not late or len(late) <= (1 - (slo.delay.share or 1.0)) * len(delays):
        return ""
    return (
        f"{len(late)} of {len(delays)} conversations were opened more than {slo.delay.limit:g} s late, up to "
        f"{late[-1]:.3g} s, which {slo.delay.metric.name} does not include; add open_delay_p95_s to the SLO"
    )


def _slower(rounds: Sequence[Record], slo: Slo) -> str:
    """That the second half of the probes was slower than the first: a queue was still growing."""
    growths = []
    for record in rounds:
        delays = [delay for _, delay in _delays(record, slo)]
        half = len(delays) // 2
        if half < _LEAST_HALF:
            return ""
        first, second, whole = fmean(delays[:half]), fmean(delays[-half:]), fmean(delays)
        growths.append((second - first) / whole if whole > 0 else 0.0)
    if len(growths) < 2 or fmean(growths) <= _SLOWER or _ends(growths)[0] <= 0:
        return ""
    return f"delays grew by {100 * fmean(growths):.0f} % from the first to the second half of a round; raise `duration`"
