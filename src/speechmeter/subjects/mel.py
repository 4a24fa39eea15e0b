"""The log-mel front-end without torch: its sizes and bands, 80 of them, 25 ms windows, every 10 ms, at 16 kHz."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

RATE, WINDOW, HOP, BANDS = 16_000, 400, 160, 80


def frames_in(samples: int) -> int:
    """How many frames the front-end makes of that many samples."""
    return 1 + samples // HOP


def mel_bands() -> list[list[float]]:
    """Triangular weights (bands × bins), corners equally spaced on the mel scale 2595 · log10(1 + f / 700)."""
    top = 2595 * math.log10(1 + RATE / 2 / 700)
    corners = [700 * (10 ** (top * k / (BANDS + 1) / 2595) - 1) for k in range(BANDS + 2)]
    bins = [k * RATE / WINDOW for k in range(WINDOW // 2 + 1)]
    return [
        [max(0.0, min((f - low) / (mid - low), (high - f) / (high - mid))) for f in bins]
        for low, mid, high in zip(corners, corners[1:], corners[2:], strict=False)
    ]


def array_log_mel(threads: int) -> Callable[[Any], Any]:
    """The front-end by NumPy and SciPy: a float32 array (batch, samples) → (batch, frames, bands)."""
    import numpy as np
    from scipy import fft

    window = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)).astype(np.float32)
    bands = np.asarray(mel_bands(), dtype=np.float32).T

    def log_mel(samples: Any) -> Any:
        padded = np.pad(samples, ((0, 0), (WINDOW // 2, WINDOW // 2)))
        frames = np.lib.stride_tricks.sliding_window_view(padded, WINDOW, axis=1)[:, ::HOP]
        spectrum = fft.rfft(frames * window, workers=threads)
        return np.log((np.square(spectrum.real) + np.square(spectrum.imag)) @ bands + np.float32(1e-10))

    return log_mel
