"""What the device can do at best: a large matrix product and a large copy, here and now. Imports torch late."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.device import Device
from speechmeter.core.protocols import Meter, Session
from speechmeter.core.types import Case, Measurement
from speechmeter.meters import torch_missing

_TRIES = 5
_LONG_ENOUGH_S = 0.02
"""A product that takes this long is not bounded by its start."""
_SIDES = (256, 512, 1024, 2048, 4096, 8192, 16384)
_COPY_BYTES = {"cpu": 2**28, "cuda": 2**30}


class PeaksMeter(Meter):
    """Peak arithmetic in the case's dtype and peak bandwidth, with the case's threads, TF32 and device."""

    name = "peaks"
    metrics = (metrics.PEAK_FLOPS, metrics.PEAK_BANDWIDTH)

    def unavailable(self, case: Case) -> str | None:
        """Needs torch."""
        return torch_missing()

    def measure(self, session: Session) -> list[Measurement]:
        """Every try is kept; the fastest is the peak, so it is the first value."""
        import torch

        device, dtype = session.case.device, getattr(torch, session.case.axes.dtype, torch.float32)
        with torch.inference_mode():
            side, arithmetic = _arithmetic(torch, str(device), dtype, session.sync)
            copied, bandwidth = _bandwidth(torch, device, session.sync)
        return [
            Measurement.of(metrics.PEAK_FLOPS, [max(arithmetic)], notes={"side": side, "tries": arithmetic}),
            Measurement.of(metrics.PEAK_BANDWIDTH, [max(bandwidth)], notes={"bytes": copied, "tries": bandwidth}),
        ]


def _arithmetic(torch: Any, device: str, dtype: Any, sync: Callable[[], None]) -> tuple[int, list[float]]:
    """(side, FLOP/s of each try) of the smallest square product that takes long enough.

    The tries are new ones: on a busy machine those that chose the side are those that other work delayed.
    """
    for side in _SIDES:
        left = torch.rand((side, side), device=device).to(dtype)
        took = min(_timed(partial(torch.mm, left, left), sync) for _ in range(_TRIES))
        if took >= _LONG_ENOUGH_S:
            break
    return side, [2 * side**3 / _timed(partial(torch.mm, left, left), sync) for _ in range(_TRIES)]


def _bandwidth(torch: Any, device: Device, sync: Callable[[], None]) -> tuple[int, list[float]]:
    copied = _COPY_BYTES["cuda" if device.is_cuda else "cpu"]
    source = torch.ones(copied, dtype=torch.uint8, device=str(device))
    target = torch.zeros_like(source)
    _timed(lambda: target.copy_(source), sync)
    return copied, [2 * copied / _timed(lambda: target.copy_(source), sync) for _ in range(_TRIES)]


def _timed(work: Callable[[], Any], sync: Callable[[], None]) -> float:
    sync()
    start = perf_counter()
    work()
    sync()
    return perf_counter() - start
