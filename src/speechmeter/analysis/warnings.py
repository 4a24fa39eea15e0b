"""What is wrong with the rounds of a case: those that failed, and samples that drift, jump or spread.

Each warning on samples names the cause and the fix. The thresholds were set by simulation: on independent samples with
5 % spread nothing fires in 98 of 100 series; `tests/unit/analysis/test_warnings.py` holds them to it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median, pstdev
from typing import Literal

from speechmeter.core import metrics
from speechmeter.core.types import FAILED, Measurement, Record, batch_of_each, by_batch

_NAMED = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit|Warning)\b|SIG[A-Z]+\b")
"""What distinguishes one error or crash from another: the name of the exception or the signal."""


def kind_of(record: Record) -> str:
    """`timeout`, `oom`, `error (ValueError)`, `crashed (SIGSEGV)`; empty where the round did not fail."""
    if record.status not in FAILED:
        return ""
    named = _NAMED.search(record.reason) if record.status in ("error", "crashed") else None
    return f"{record.status} ({named.group()})" if named else record.status


def failed_rounds(records: Sequence[Record]) -> dict[str, int]:
    """Kind of failure → rounds that ended with it."""
    found: dict[str, int] = {}
    for kind in filter(None, map(kind_of, records)):
        found[kind] = found.get(kind, 0) + 1
    return found


def in_words(records: Sequence[Record]) -> str:
    """`3 of 8 rounds failed: timeout`; empty where none did."""
    found = failed_rounds(records)
    return f"{sum(found.values())} of {len(records)} rounds failed: {', '.join(found)}" if found else ""


Kind = Literal["slow start", "drift", "bimodal", "autocorrelation", "outliers", "spread"]

_LEAST_SAMPLES = 30
"""With fewer samples, none of these can be distinguished; only a wide spread is noticed."""
_DRIFT = 0.05
_SLOW_START = 0.10
_SPREAD = 0.15
_TWO_MODES = 4.5
_SMALLEST_MODE = 0.15
_AUTOCORRELATION = 0.35

_WORDS: dict[Kind, str] = {
    "slow start": "the first samples are slower than the rest, because the warm-up was too short; raise `warmup`",
    "drift": "samples get steadily slower or faster, because the clock rate or the temperature changes; measure more "
    "rounds",
    "bimodal": "samples form two groups, for example two clock rates or kinds of cores; set `cores`, and measure "
    "more rounds",
    "autocorrelation": "successive samples are correlated, so they contain less information; measure more rounds",
    "outliers": "a few samples are much slower than the rest, because another program interfered; close other programs",
    "spread": "samples vary a lot: other programs run, or the work differs between calls; close other programs, and "
    "measure more rounds",
}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong with a series."""

    kind: Kind

    @property
    def text(self) -> str:
        """Cause and fix in one line."""
        return f"unstable ({self.kind}): {_WORDS[self.kind]}"


def findings(values: Sequence[float]) -> list[Finding]:
    """What is wrong with one process's samples, in the order they were taken; at most one cause of a trend is named."""
    if len(values) < 5 or min(values) <= 0:
        return []
    if len(values) < _LEAST_SAMPLES:
        return [Finding(kind="spread")] if _robust_spread(values) > 2 * _SPREAD else []
    logs = [math.log(value) for value in values]
    found = [Finding(kind=kind)] if (kind := _shape(logs)) else []
    if not found and _has_outliers(values):
        found.append(Finding(kind="outliers"))
    if not found and _robust_spread(values) > _SPREAD:
        found.append(Finding(kind="spread"))
    return found


def case_warnings(records: Sequence[Record]) -> list[str]:
    """Warnings on the latency of one case, over its rounds; each at most once."""
    rounds = [shares for record in records if (m := record.find(metrics.LATENCY.id)) and (shares := _shares(m))]
    texts = dict.fromkeys(finding.text for values in rounds for finding in findings(values))
    trend = _common_trend([values for values in rounds if len(values) < _LEAST_SAMPLES])
    if trend:
        texts[Finding(kind=trend).text] = None
    return list(texts)


def _shares(measurement: Measurement) -> list[float]:
    """Each sample over the median of its batch, as batches differ in length; none where a batch has a single one."""
    own = by_batch(measurement)
    if min(map(len, own)) < 2 or min(measurement.values) <= 0:
        return []
    middles = [median(values) for values in own]
    return [value / middles[batch] for batch, value in zip(batch_of_each(measurement), measurement.values, strict=True)]


def _shape(logs: Sequence[float]) -> Kind | None:
    """The one shape that a series has, if any: two groups, a trend, or memory."""
    if _is_bimodal(logs):
        return "bimodal"
    if (trend := _trend(logs)) is not None:
        return trend
    return "autocorrelation" if _autocorrelation(logs) > max(_AUTOCORRELATION, 3.3 / math.sqrt(len(logs))) else None


def _common_trend(rounds: Sequence[Sequence[float]]) -> Literal["slow start", "drift"] | None:
    """A trend that short rounds share: samples as shares of their round's median, by their position in the round."""
    shares = [[math.log(value / median(values)) for value in values] for values in rounds]
    longest = max(map(len, shares), default=0)
    together = [values[index] for index in range(longest) for values in shares if index < len(values)]
    return _trend(together) if len(together) >= _LEAST_SAMPLES and longest >= 5 else None


def _trend(logs: Sequence[float]) -> Literal["slow start", "drift"] | None:
    """A slow start is a trend that goes away with the first quarter; a drift is one that stays."""
    n = len(logs)
    head, rest = logs[: max(3, n // 10)], logs[n // 4 :]
    rest_drifts = _drifts(rest)
    if not rest_drifts and median(head) - median(rest) > max(_SLOW_START, 3 * _robust_sd(rest)):
        return "slow start"
    return "drift" if _drifts(logs) and rest_drifts else None


def _drifts(logs: Sequence[float]) -> bool:
    """Kendall's trend test at about 1 in 2,000, and a change of level that matters."""
    n = len(logs)
    pairs = sum((b > a) - (b < a) for i, a in enumerate(logs) for b in logs[i + 1 :])
    z = abs(pairs) / math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    third = max(1, n // 3)
    return z > 3.5 and abs(median(logs[-third:]) - median(logs[:third])) > _DRIFT


def _is_bimodal(logs: Sequence[float]) -> bool:
    """Ashman's D of the best split in two: above 4.5 the groups do not touch."""
    ordered = sorted(logs)
    n = len(ordered)
    least = max(3, math.ceil(_SMALLEST_MODE * n))
    gaps = [(ordered[i] - ordered[i - 1], i) for i in range(least, n - least + 1)]
    if not gaps:
        return False
    cut = max(gaps)[1]
    low, high = ordered[:cut], ordered[cut:]
    spread = math.sqrt(pstdev(low) ** 2 + pstdev(high) ** 2)
    distance = fmean(high) - fmean(low)
    return distance > _DRIFT and (spread == 0 or math.sqrt(2) * distance / spread > _TWO_MODES)


def _autocorrelation(logs: Sequence[float]) -> float:
    centre = fmean(logs)
    total = sum((value - centre) ** 2 for value in logs)
    if total == 0:
        return 0.0
    return sum((a - centre) * (b - centre) for a, b in pairwise(logs)) / total


def _has_outliers(values: Sequence[float]) -> bool:
    centre = median(values)
    limit = max(1.5 * centre, centre * (1 + 8 * _robust_spread(values)))
    return any(value > limit for value in values)


def _robust_spread(values: Sequence[float]) -> float:
    return _robust_sd(values) / median(values)


def _robust_sd(values: Sequence[float]) -> float:
    centre = median(values)
    return 1.4826 * median(abs(value - centre) for value in values)
