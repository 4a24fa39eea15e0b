"""Shapes with the published distribution of LibriSpeech train-clean-100 at three speeds, BPE of 500 tokens.

Only the published figures are known here, not the utterances. Each marginal (raw frames, tokens, frames for each token)
is a monotone curve through its quantiles over normal scores, sampled at evenly spaced probabilities. So every seed has
the same lengths; the seed decides which T meets which U, and the order.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from speechmeter.workloads.shapes.table import RAW, Shapes, halved

ROWS = 85_617
"""Utterances of the published set, speed perturbation included."""
VERSION = "librispeech-100.v1"
"""Changes whenever the same seed would give other shapes."""

_PROBABILITIES = (0.01, 0.05, 0.25, 0.50, 0.75, 0.95, 0.99)
_RAW_FRAMES = (128, 252, 425, 1142, 1376, 1533, 1732, 1812, 2725)
_TOKENS = (2, 12, 22, 57, 71, 83, 98, 109, 151)
_RATIO = (2.22, 3.145, 3.483, 4.099, 4.657, 5.305, 6.553, 7.879, 29.5)
"""Quantiles: the least, those at the probabilities, the largest. The ratio is T after 4× subsampling over U, asked for
a little lower than published (3.19, 3.53, 4.15, 4.69, 5.33, 6.58, 7.98), so that the published one comes out."""
_LEAN = 0.11
"""Correlation of the normal scores of T and T/U at the start: it gives T and U their correlation, 0.824."""
_TURNS = 4
"""Exchanges between the marginals of U and T/U. After four nothing moves in the third digit of any quantile."""


@lru_cache(maxsize=2)
def generate(count: int = ROWS, seed: int = 0) -> Shapes:
    """So many rows of raw frames and tokens, the same for a seed. Needs numpy and scipy."""
    import numpy as np
    from scipy.special import ndtri

    draw = np.random.default_rng(seed)
    edge = float(ndtri(1 - 0.5 / ROWS))
    scores = np.clip(ndtri((np.arange(count) + 0.5) / count), -edge, edge)
    own = draw.permutation(scores)
    raw = _rounded(_curve(_RAW_FRAMES, edge)(own))
    frames = halved(raw)
    lean = _LEAN * own + (1 - _LEAN**2) ** 0.5 * draw.standard_normal(count)
    tokens = _paired(frames, lean, _rounded(_curve(_TOKENS, edge)(scores)), _ratios(scores, edge))
    tokens = _bounded(tokens, frames)
    if count >= ROWS:
        _put_ends(tokens, frames)
    rows = np.stack([raw, tokens], axis=1).astype(np.int32)
    return Shapes(rows=rows, frames=RAW, origin=f"{VERSION}, seed {seed}")


def _paired(frames: Any, lean: Any, tokens: Any, ratios: Any) -> Any:
    """Tokens for each T, so that they are exactly the given ones and T/U comes close to the given ratios.

    By turns: the ratios in the order of what T/U is now, then the tokens in the order that these ratios ask for.
    """
    chosen = tokens
    for _ in range(_TURNS):
        chosen = tokens[_ranks(frames / ratios[_ranks(lean)])]
        lean = frames / chosen
    return chosen


def _bounded(tokens: Any, frames: Any) -> Any:
    """Tokens that keep T/U between the least and the largest one published; whole tokens overshoot in a few rows."""
    import numpy as np

    return np.clip(tokens, np.ceil(frames / _RATIO[-1]), np.floor(frames / _RATIO[0]))


def _put_ends(tokens: Any, frames: Any) -> None:
    """Exchange the tokens of four rows, so that the least and the largest T/U are there as in the published set."""
    import numpy as np

    for ratio, count in ((_RATIO[-1], _TOKENS[0]), (_RATIO[0], 100)):
        giver, taker = np.argmin(abs(tokens - count)), np.argmin(abs(frames - ratio * count))
        tokens[[giver, taker]] = tokens[[taker, giver]]


def _ratios(scores: Any, edge: float) -> Any:
    import numpy as np

    return np.exp(_curve(tuple(np.log(_RATIO)), edge)(scores))


def _curve(quantiles: tuple[float, ...], edge: float) -> Any:
    from scipy.interpolate import PchipInterpolator
    from scipy.special import ndtri

    return PchipInterpolator([-edge, *ndtri(_PROBABILITIES), edge], quantiles)


def _ranks(values: Any) -> Any:
    import numpy as np

    ranks: Any = np.empty(len(values), dtype=np.int64)
    ranks[np.argsort(values, kind="stable")] = np.arange(len(values))
    return ranks


def _rounded(values: Any) -> Any:
    import numpy as np

    return np.floor(values + 0.5).astype(np.int64)
