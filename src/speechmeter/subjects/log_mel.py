"""The built-in log-mel front-end: 80 bands, 25 ms windows, every 10 ms, at 16 kHz."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from speechmeter.core.axes import Axis
from speechmeter.core.errors import SubjectError
from speechmeter.core.protocols import Installed, Prepared
from speechmeter.core.types import Case, Stage
from speechmeter.subjects.installed import installed

BANDS = 80
_RATE, _WINDOW, _HOP = 16_000, 400, 160


class LogMelSubject:
    """`log-mel`: spectrum, mel bands, logarithm. No parameters, real arithmetic, no download."""

    summary = "built-in log-mel front-end, 80 bands"
    axes: tuple[Axis, ...] = ()
    options: tuple[str, ...] = ()
    runs_code = False

    def installed(self) -> Installed:
        """Needs torch."""
        return installed("torch", extra="torch")

    def check(self, case: Case) -> None:
        """It takes no source."""
        if case.subject.source:
            raise SubjectError(f"log-mel takes no source, not {case.subject.source!r}", fix="write `log-mel` alone")

    def unavailable(self, case: Case) -> str | None:
        """The Fourier transform has no half-precision path on the CPU."""
        if case.axes["dtype"] != "float32":
            return "log-mel runs in float32 only: the Fourier transform is not to be had in half precision"
        return None

    def prepare(self, case: Case, device: str) -> Prepared:
        """Build the module on the device."""
        from speechmeter.subjects import torch_runtime as runtime

        dtype = runtime.configure(case)
        module = build_log_mel().to(device)
        model = runtime.inference(runtime.compiled(module, case))
        return Prepared(
            stages=(
                runtime.copy_stage(device, dtype),
                Stage(name="model", fn=model, modules={"log-mel": module}),
            ),
            modules={"log-mel": module},
            sync=runtime.sync_for(device),
        )


def build_log_mel() -> Any:
    """The front-end as a torch module: (batch, samples) → (batch, bands, frames)."""
    import torch

    class LogMel(torch.nn.Module):  # type: ignore[misc]
        """Log of the mel-weighted power spectrum."""

        window: torch.Tensor
        bands: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("window", torch.hann_window(_WINDOW))
            self.register_buffer("bands", torch.tensor(mel_bands(), dtype=torch.float32))

        def forward(self, samples: torch.Tensor) -> torch.Tensor:
            spectrum = torch.stft(
                samples,
                n_fft=_WINDOW,
                hop_length=_HOP,
                window=self.window,
                pad_mode="constant",
                return_complex=True,
            )
            return torch.log(torch.matmul(self.bands, spectrum.abs().square()) + 1e-10)

    return LogMel().eval()


def frames_in(samples: int) -> int:
    """How many frames the front-end makes of that many samples."""
    return 1 + samples // _HOP


def array_log_mel(threads: int) -> Callable[[Any], Any]:
    """The same front-end without torch: a float32 array (batch, samples) → (batch, frames, bands)."""
    import numpy as np
    from scipy import fft

    window = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(_WINDOW) / _WINDOW)).astype(np.float32)
    bands = np.asarray(mel_bands(), dtype=np.float32).T

    def log_mel(samples: Any) -> Any:
        padded = np.pad(samples, ((0, 0), (_WINDOW // 2, _WINDOW // 2)))
        frames = np.lib.stride_tricks.sliding_window_view(padded, _WINDOW, axis=1)[:, ::_HOP]
        spectrum = fft.rfft(frames * window, workers=threads)
        return np.log((np.square(spectrum.real) + np.square(spectrum.imag)) @ bands + np.float32(1e-10))

    return log_mel


def mel_bands() -> list[list[float]]:
    """Triangular weights (bands × bins), corners equally spaced on the mel scale 2595 · log10(1 + f / 700)."""
    top = 2595 * math.log10(1 + _RATE / 2 / 700)
    corners = [700 * (10 ** (top * k / (BANDS + 1) / 2595) - 1) for k in range(BANDS + 2)]
    bins = [k * _RATE / _WINDOW for k in range(_WINDOW // 2 + 1)]
    return [
        [max(0.0, min((f - low) / (mid - low), (high - f) / (high - mid))) for f in bins]
        for low, mid, high in zip(corners, corners[1:], corners[2:], strict=False)
    ]
