"""Sound as servers take it: 16-bit samples, other sampling rates, WAV files."""

from __future__ import annotations

import struct
from typing import Any

from speechmeter.subjects.common import RATE

_FULL_SCALE = 32_767


def pcm16(samples: Any) -> bytes:
    """Float samples as 16-bit little-endian ones."""
    return bytes((samples.clip(-1, 1) * _FULL_SCALE).astype("<i2").tobytes())


def float32(samples: Any) -> bytes:
    """Float samples as 32-bit little-endian ones."""
    return bytes(samples.astype("<f4").tobytes())


ENCODINGS = {"s16le": pcm16, "f32le": float32}
"""How samples become bytes."""


def wav(pcm: bytes, rate: int = RATE) -> bytes:
    """A WAV file of 16-bit mono samples."""
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(pcm), b"WAVE", b"fmt ", 16, 1, 1, rate, rate * 2, 2, 16,
                       b"data", len(pcm))  # fmt: skip
    return head + pcm


class Resampler:
    """Samples at 16 kHz to another rate, chunk by chunk, without a seam between chunks."""

    def __init__(self, rate: int) -> None:
        self._stream: Any = None
        if rate != RATE:
            import soxr

            self._stream = soxr.ResampleStream(RATE, rate, 1, dtype="float32")

    def __call__(self, samples: Any) -> Any:
        """What is ready of the samples so far."""
        return samples if self._stream is None else self._stream.resample_chunk(samples)

    def rest(self) -> Any:
        """What is left at the end."""
        import numpy as np

        empty: Any = np.zeros(0, dtype="float32")
        return empty if self._stream is None else self._stream.resample_chunk(empty, last=True)
