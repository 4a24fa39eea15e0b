"""What margin of a score some data can prove, before anything is measured."""

from __future__ import annotations

from collections.abc import Sequence

from speechmeter.analysis import rate_intervals

_CHANGED = 0.01
"""The share of words in which two configurations are assumed to differ, half of them for the better."""


def provable(words: Sequence[int], limit: float) -> str:
    """What utterances of so many words can prove about a bound in percentage points, in a sentence."""
    margin = margin_of(words)
    count, total = len(words), sum(words)
    data = f"{count} utterance{'' if count == 1 else 's'}, {total:,} words"
    if margin is None:
        return f"with {data} only identical text can pass: an interval needs {rate_intervals.LEAST} utterances"
    told = f"if 1 word in 100 changes, half of them for the better, {data} can prove about +{margin:.2f} points"
    if margin > limit:
        return f"{told}, so a configuration that changes words will hardly pass; identical text passes"
    return told


def margin_of(words: Sequence[int], changed: float = _CHANGED) -> float | None:
    """The upper end of the difference in percentage points where as many words get worse as get better."""
    used = [count for count in words if count]
    if len(used) < rate_intervals.LEAST:
        return None
    differ = max(2, 2 * round(changed * sum(used) / 2))
    step = len(used) / differ
    errors = [0.0] * len(used)
    for number in range(differ):
        errors[int(number * step) % len(used)] += 1.0 if number % 2 else -1.0
    units = tuple((error, float(count)) for error, count in zip(errors, used, strict=True))
    ends = rate_intervals.rate_interval(units, signed=True)
    return None if ends is None else 100 * ends[1]
