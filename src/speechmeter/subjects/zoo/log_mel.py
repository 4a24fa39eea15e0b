"""The log-mel front-end: 80 bands, 25 ms windows, every 10 ms, at 16 kHz. Imports torch."""

from __future__ import annotations

import torch

from speechmeter.subjects.mel import HOP, WINDOW, mel_bands


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
