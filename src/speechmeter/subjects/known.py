"""Subjects whose cost is known: `speechmeter selftest` compares the meters with them.

A factory for `python:speechmeter.subjects.known:NAME` has its true cost in a constant beside it. An object that is
called in the running program times itself inside each call, so that its truth is right on a busy machine too.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter, sleep
from typing import Any

from speechmeter.core.protocols import Prepared
from speechmeter.core.types import Batch, Stage

SPIN_S = 0.02
SPIKE_BYTES = 64 * 2**20
SPIKE_ALIVE_S = 0.005
SIDE = 1024
_FEATURES, _HIDDEN, _FRAMES, _CHANNELS, _WIDTH = 80, 128, 100, 64, 5


class Spins:
    """Calls of about `SPIN_S`; `lasted_s` holds how long each took by its own clock."""

    def __init__(self) -> None:
        self.lasted_s: list[float] = []

    def __call__(self, nothing: object) -> None:
        """One call."""
        start = perf_counter()
        while perf_counter() - start < SPIN_S:
            pass
        self.lasted_s.append(perf_counter() - start)


class Multiplied:
    """Calls of one matrix product each; `best_flops_per_s` is the fastest of them by its own clock."""

    def __init__(self) -> None:
        self.best_flops_per_s = 0.0

    def __call__(self, matrix: Any) -> None:
        """One call."""
        start = perf_counter()
        matrix @ matrix
        took_s = perf_counter() - start
        self.best_flops_per_s = max(self.best_flops_per_s, 2 * len(matrix) ** 3 / took_s)


def spikes() -> Prepared:
    """A call that holds `SPIKE_BYTES` for 5 ms."""
    import torch

    def spike(batch: Batch) -> None:
        held = torch.ones(SPIKE_BYTES, dtype=torch.uint8)
        sleep(SPIKE_ALIVE_S)
        del held

    return Prepared(stages=(Stage(name="model", fn=spike),))


def spikes_on_cuda() -> Prepared:
    """The same on the first CUDA device."""
    import torch

    def spike(batch: Batch) -> None:
        held = torch.ones(SPIKE_BYTES, dtype=torch.uint8, device="cuda")
        del held

    return Prepared(stages=(Stage(name="model", fn=spike),), sync=torch.cuda.synchronize)


def layers() -> Callable[..., Any]:
    """An LSTM, a depthwise convolution and two tied linear layers on features made from nothing."""
    import torch
    from torch import nn

    class Layers(nn.Module):  # type: ignore[misc]
        """Small, and with one of everything that counters get wrong."""

        def __init__(self) -> None:
            super().__init__()
            self.recurrent = nn.LSTM(_FEATURES, _HIDDEN, batch_first=True)
            self.depthwise = nn.Conv1d(_HIDDEN, _HIDDEN, _WIDTH, padding=_WIDTH // 2, groups=_HIDDEN)
            self.first = nn.Linear(_HIDDEN, _HIDDEN)
            self.second = nn.Linear(_HIDDEN, _HIDDEN)
            self.second.weight = self.first.weight

        def forward(self, samples: Any) -> Any:
            frames = torch.zeros((1, _FRAMES, _FEATURES), device=samples.device, dtype=samples.dtype)
            hidden, _ = self.recurrent(frames)
            return self.second(self.first(self.depthwise(hidden.transpose(1, 2)).transpose(1, 2)))

    return Layers()


LAYERS_FLOPS = 2 * _FRAMES * (4 * _HIDDEN * (_FEATURES + _HIDDEN) + _HIDDEN * _WIDTH + 2 * _HIDDEN * _HIDDEN)
LAYERS_PARAMETERS = 4 * _HIDDEN * (_FEATURES + _HIDDEN + 2) + _HIDDEN * (_WIDTH + 1) + _HIDDEN * _HIDDEN + 2 * _HIDDEN
LAYERS_TIED = LAYERS_PARAMETERS + _HIDDEN * _HIDDEN


def multiplies() -> Callable[..., Any]:
    """Nothing but products of square matrices of side `SIDE`, back to back."""
    import torch
    from torch import nn

    class Multiplies(nn.Module):  # type: ignore[misc]
        """Eight products of one weight with itself."""

        def __init__(self) -> None:
            super().__init__()
            self.matrix = nn.Parameter(torch.full((SIDE, SIDE), 1.0 / SIDE))

        def forward(self, samples: Any) -> Any:
            found = self.matrix
            for _ in range(8):
                found = torch.mm(self.matrix, self.matrix)
            return found

    return Multiplies()


MULTIPLIES_FLOPS = 8 * 2 * SIDE**3


class Burns:
    """Products on a CUDA device until 50 ms have passed, the card's own power read after each call.

    `energy_j` is what a call took by those readings: mean power times the time of a call.
    """

    def __init__(self, read_power_w: Callable[[], float]) -> None:
        self._read_power_w = read_power_w
        self._calls: list[tuple[float, float]] = []

    def __call__(self, matrix: Any) -> None:
        """One call."""
        import torch

        start = perf_counter()
        while perf_counter() - start < 0.05:
            torch.mm(matrix, matrix)
            torch.cuda.synchronize()
        power_w = self._read_power_w()
        self._calls.append((perf_counter() - start, power_w))

    @property
    def energy_j(self) -> float:
        """Over the second half of the calls: power follows load by a few tenths of a second."""
        settled = self._calls[len(self._calls) // 2 :]
        seconds = sum(duration for duration, _ in settled) / len(settled)
        return seconds * sum(power for _, power in settled) / len(settled)
