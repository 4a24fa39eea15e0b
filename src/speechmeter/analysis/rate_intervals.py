"""Intervals of error rates, such as WER: errors over words, summed over utterances.

A handful of bad utterances decides such a rate, and a set may hold none of them by chance. The bootstrap cannot know of
what it has not seen: with no error in 20 utterances it says "0 to 0". So there are two ways, and both keep their
promise with rare bad utterances (`benchmarks/verdicts.py` simulates it):

- with few erroneous utterances, or few at all, an interval by betting (Waudby-Smith and Ramdas, 2024). It holds for any
  distribution of utterance error rates between 0 and 1, and is wide;
- otherwise the bootstrap-t over utterances. The upper end of a rate is the 97.5 % point of plain resamples instead,
  with one more utterance of mean length that is entirely wrong: the next one might be. Without it the upper end misses
  the truth in up to 20 % of sets.

The units are utterances, or speakers where they are known: utterances of one speaker are alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

LEAST = 2
"""A single unit has no interval."""
FEW_ERRONEOUS = 10
"""With fewer units in error, or different on both sides, the interval is by betting."""
FEW_UNITS = 20
LEAST_SPEAKERS = 5
"""Fewer speakers than this say nothing about other speakers: then the units are utterances."""
_LEVEL = 0.05
_RESAMPLES = 2000
_SEED = 20_250_101
_ORDERS = 8
"""A bet depends on the order of the units: the capital is the mean over this many orders, which is a fair bet too."""
_CAUTION = 0.9
"""No bet loses more than this share of the capital."""
_CHUNK = 2_000_000

Unit = tuple[float, float]
"""(errors, words) of an utterance or a speaker. Differences of two systems may be negative."""


def by_speaker(units: Sequence[Unit], speakers: Sequence[str]) -> tuple[Unit, ...]:
    """The sums of each speaker; the units as they are where speakers are not all known, or too few."""
    if len(speakers) != len(units) or not all(speakers) or len(set(speakers)) < LEAST_SPEAKERS:
        return tuple(units)
    sums: dict[str, list[float]] = {}
    for (errors, words), speaker in zip(units, speakers, strict=True):
        total = sums.setdefault(speaker, [0.0, 0.0])
        total[0] += errors
        total[1] += words
    return tuple((errors, words) for errors, words in sums.values())


def is_by_betting(units: Sequence[Unit]) -> bool:
    """Whether so few units are in error that the interval is by betting."""
    erroneous = sum(errors != 0 for errors, words in units if words > 0)
    return erroneous < FEW_ERRONEOUS or len(units) < FEW_UNITS


@lru_cache(maxsize=512)
def rate_interval(units: tuple[Unit, ...], *, signed: bool = False) -> tuple[float, float] | None:
    """The ends of the 95 % interval of the rate; None with fewer than `LEAST` units that hold words.

    The error rate of a unit counts as 1 at most, and of a difference (`signed`) as −1 at least. The interval holds the
    rate itself also where that is more.
    """
    import numpy as np

    known = np.asarray([unit for unit in units if unit[1] > 0], dtype=float).reshape(-1, 2)
    if len(known) < LEAST:
        return None
    words = known[:, 1]
    least = -1.0 if signed else 0.0
    rates = np.clip(known[:, 0] / words, least, 1.0)
    found = _betting(rates, words, least) if is_by_betting(units) else _bootstrap_t(rates * words, words, signed=signed)
    value = float(known[:, 0].sum() / words.sum())
    return min(found[0], value), max(found[1], value)


def share_interval(count: float, total: float) -> tuple[float, float]:
    """The ends of the exact 95 % interval of a share, `count` of `total` (Clopper and Pearson).

    The two need not be whole numbers: the effective size of a sample is not.
    """
    from scipy.special import betaincinv

    low = float(betaincinv(count, total - count + 1, _LEVEL / 2)) if count else 0.0
    high = float(betaincinv(count + 1, total - count, 1 - _LEVEL / 2)) if count < total else 1.0
    return low, high


def _betting(rates: Any, words: Any, least: float) -> tuple[float, float]:
    """The rates against which no bettor could have won 1 / 0.05 times the stake, betting on units as they come.

    On each unit a share of the capital is bet that the rate is higher, and in a second game that it is lower, before
    the unit is seen. If the assumed rate were true, no strategy would gain on average.
    """
    import numpy as np

    scale = 1.0 - least
    seen = (rates - least) / scale  # between 0 and 1
    weights = words / words.max()
    half = np.geomspace(1e-6, 0.5, 300)  # rates to be tried, closer together near 0 and 1
    assumed = np.concatenate([half, (1 - half)[::-1][1:]])
    capital = np.full((_ORDERS, len(assumed)), -math.inf)
    for order in range(_ORDERS):
        shuffled = np.random.default_rng([_SEED, order]).permutation(len(seen))
        capital[order] = _played(seen[shuffled], weights[shuffled], assumed)
    mean = np.logaddexp.reduce(capital, axis=0) - math.log(_ORDERS)
    possible = np.flatnonzero(mean < math.log(1 / _LEVEL))
    if not len(possible):
        possible = np.array([int(np.argmin(mean))])
    low, high = possible[0], possible[-1]
    ends = assumed[low - 1] if low else 0.0, assumed[high + 1] if high + 1 < len(assumed) else 1.0
    return float(ends[0] * scale + least), float(ends[1] * scale + least)


def _played(seen: Any, weights: Any, assumed: Any) -> Any:
    """The logarithm of the capital against each assumed rate after all units, half of it in each of the two games."""
    import numpy as np

    up, down = np.zeros(len(assumed)), np.zeros(len(assumed))
    total, squares = 0.5, 0.25  # as if one unit had been seen, of a wide spread
    for count, (rate, weight) in enumerate(zip(seen, weights, strict=True), start=1):
        spread = max(squares / count, 1e-4)
        stake = math.sqrt(2 * math.log(2 / _LEVEL) / (spread * len(seen)))
        gain = weight * (rate - assumed)
        up += np.log1p(np.minimum(stake, _CAUTION / assumed) * gain)
        down += np.log1p(-np.minimum(stake, _CAUTION / (1 - assumed)) * gain)
        total += weight * rate
        squares += (weight * rate - total / (count + 1)) ** 2
    return np.logaddexp(up, down) - math.log(2)


def _bootstrap_t(errors: Any, words: Any, *, signed: bool) -> tuple[float, float]:
    """The ends from studentised resamples; of a rate the upper one from resamples with an entirely wrong unit."""
    import numpy as np

    low, high = _studentised(errors, words)
    if signed:
        return max(low, -1.0), min(high, 1.0)
    mean = words.mean()
    rates = np.concatenate([rates for rates, _ in _resampled(np.append(errors, mean), np.append(words, mean))])
    return max(low, 0.0), float(np.percentile(rates, 97.5))


def _studentised(errors: Any, words: Any) -> tuple[float, float]:
    import numpy as np

    rate = float(errors.sum() / words.sum())
    error = float(_standard_error(errors, words, np.array(rate)))
    off = np.concatenate([(rates[own > 0] - rate) / own[own > 0] for rates, own in _resampled(errors, words)])
    if not len(off):  # all units are alike
        return rate, rate
    low, high = np.percentile(off, [2.5, 97.5])
    return rate - float(high) * error, rate - float(low) * error


def _resampled(errors: Any, words: Any) -> Iterator[tuple[Any, Any]]:
    """(rates, their standard errors) of resamples, some at a time."""
    import numpy as np

    size = len(errors)
    draw = np.random.default_rng(_SEED)
    step = max(1, _CHUNK // size)
    for start in range(0, _RESAMPLES, step):
        picked = draw.integers(0, size, size=(min(step, _RESAMPLES - start), size))
        some, of = errors[picked], words[picked]
        rates = some.sum(axis=1) / of.sum(axis=1)
        yield rates, _standard_error(some, of, rates)


def _standard_error(errors: Any, words: Any, rate: Any) -> Any:
    """Of a ratio of sums, linearised."""
    import numpy as np

    size = errors.shape[-1]
    off = errors - rate[..., None] * words
    return np.sqrt((off**2).sum(axis=-1) * size / (size - 1)) / words.sum(axis=-1)
