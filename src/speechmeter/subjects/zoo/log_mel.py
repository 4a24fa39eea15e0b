"""The log-mel front-end: 80 bands, 25 ms windows, every 10 ms, at 16 kHz. Imports torch."""

from __future__ import annotations

import math

import torch

RATE, WINDOW, HOP, BANDS = 16_000, 400, 160, 80


class LogMel(torch.nn.Module):  # type: ignore[misc]
    """Log of the mel-weighted power spectrum: (batch, samples) → (batch, bands, frames). No parameters."""

    window: torch.Tensor
    bands: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(WINDOW))
        self.register_buffer("bands", torch.tensor(mel_bands(), dtype=torch.float32))

    def forward(self, samples: torch.Tensor) -> torch.Tensor:
        """One frame for every begun hop, and one more: windows are centred, the edges padded with zeros."""
        spectrum = torch.stft(
            samples,
            n_fft=WINDOW,
            hop_length=HOP,
            window=self.window,
            pad_mode="constant",
            return_complex=True,
        )
        return torch.log(torch.matmul(self.bands, spectrum.abs().square()) + 1e-10)


def mel_bands() -> list[list[float]]:
    """Triangular weights (bands × bins), corners equally spaced on the mel scale 2595 · log10(1 + f / 700)."""
    top = 2595 * math.log10(1 + RATE / 2 / 700)
    corners = [700 * (10 ** (top * k / (BANDS + 1) / 2595) - 1) for k in range(BANDS + 2)]
    bins = [k * RATE / WINDOW for k in range(WINDOW // 2 + 1)]
    return [
        [max(0.0, min((f - low) / (mid - low), (high - f) / (high - mid))) for f in bins]
        for low, mid, high in zip(corners, corners[1:], corners[2:], strict=False)
    ]
