"""Shapes with the published distribution of LibriSpeech train-clean-100 at three speeds, BPE of 500 tokens.

Only the published figures are known, not the utterances. Each marginal (raw frames, tokens, frames for each token)
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
"""Correlation of the normal scores of T and T/U at the start. It gives T and U their correlation, 0.824."""
_TURNS = 4
"""Exchanges between the marginals of U and T/U. After four, no quantile changes in its third digit."""


@lru_cache(maxsize=2)
def generate(count: int = ROWS, seed: int = 0) -> Shapes:
    """`count` rows of raw frames and tokens, the same for a seed. Needs numpy and scipy."""
    import numpy as np
    from scipy.special import ndtri

    draw = np.random.default_rng(seed)
    edge = float(ndtri(1 - 0.5 / ROWS))
    scores = np.clip(ndtri((np.arange(count) + 0.5) / count), -edge, edge)
    own = draw.permutation(scores)
    raw = _rounded(_curve(_RAW_FRAMES, edge)(own))
    frames = halved(raw)
    ratios = np.exp(_curve(tuple(np.log(_RATIO)), edge)(scores))
    all_tokens = _rounded(_curve(_TOKENS, edge)(scores))
    # Alternately order the ratios by the present T/U, then the tokens by what these ratios ask for. So the tokens are
    # exactly the given ones, and T/U comes close to the given ratios.
    lean = _LEAN * own + (1 - _LEAN**2) ** 0.5 * draw.standard_normal(count)
    for _ in range(_TURNS):
        tokens = all_tokens[_ranks(frames / ratios[_ranks(lean)])]
        lean = frames / tokens
    # whole tokens take T/U beyond the published extremes in a few rows
    tokens = np.clip(tokens, np.ceil(frames / _RATIO[-1]), np.floor(frames / _RATIO[0]))
    if count >= ROWS:  # exchange the tokens of four rows, so that the published extremes of T/U are there
        for ratio, wanted in ((_RATIO[-1], _TOKENS[0]), (_RATIO[0], 100)):
            giver, taker = np.argmin(abs(tokens - wanted)), np.argmin(abs(frames - ratio * wanted))
            tokens[[giver, taker]] = tokens[[taker, giver]]
    rows = np.stack([raw, tokens], axis=1).astype(np.int32)
    return Shapes(rows=rows, frames=RAW, origin=f"{VERSION}, seed {seed}")


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
