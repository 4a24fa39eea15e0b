"""A second source of FLOPs: what the processor itself counted. Rarely to be had, and independent of every formula."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import ceil
from types import MappingProxyType
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.batches import in_turn
from speechmeter.core.errors import SensorError
from speechmeter.core.protocols import ORDINARY, Phase, Session
from speechmeter.core.stages import step
from speechmeter.core.types import Batch, Case, Measurement, Stage
from speechmeter.meters.hardware import known_work
from speechmeter.meters.hardware.base import Backend, Choice, Counted, Counter, choose
from speechmeter.meters.hardware.papi import PapiBackend
from speechmeter.meters.hardware.perf import PerfBackend

BACKENDS: tuple[Backend, ...] = (PerfBackend(), PapiBackend())
"""perf first: it follows threads that start during a call."""
_CALLS = 3
_SLOW_NS = 5 * 10**9
_COUNTED_DTYPES = ("float32", "float64")


class HardwareFlopsMeter:
    """Floating-point operations of a call on the CPU, by the first back-end whose counter passes a known workload."""

    name = "hardware-flops"
    metrics = (metrics.FLOPS_HARDWARE,)
    environ: Mapping[str, str] = MappingProxyType({})
    ways = ORDINARY
    phase = Phase.TIMING

    def __init__(
        self, *, backends: Sequence[Backend] = BACKENDS, check: Callable[[Counter], None] = known_work.check
    ) -> None:
        self._backends = backends
        self._check = check

    def unavailable(self, case: Case) -> str | None:
        """What the counters cannot see in this case, or why no back-end can be opened here and read."""
        unseen = _unseen(case)
        if unseen is not None:
            return unseen
        choice = self._choose()
        if choice.counter is None:
            return choice.reason
        choice.counter.close()
        return None

    def measure(self, session: Session) -> list[Measurement]:
        """One value a call, batches in order. The counters are opened now, when the threads of the model are there."""
        choice = self._choose()
        if choice.counter is None:
            return [Measurement.absent(metrics.FLOPS_HARDWARE, choice.reason)]
        try:
            calls = [_count_call(choice.counter, session.stages, batch) for batch in _to_call(session)]
        except SensorError as error:
            return [Measurement.absent(metrics.FLOPS_HARDWARE, f"{choice.name}: {error}")]
        finally:
            choice.counter.close()
        return [_figure(choice.name, calls)]

    def _choose(self) -> Choice:
        return choose(self._backends, self._check)


def _unseen(case: Case) -> str | None:
    if not case.device.is_cpu:
        return "counts the processor's arithmetic only"
    dtype = case.axes.get("dtype", "float32")
    if dtype not in _COUNTED_DTYPES:
        return f"counts single and double precision only, and this case computes in {dtype}"
    return None


def _to_call(session: Session) -> Iterator[Batch]:
    """Whole passes over the batches, three calls or more; one pass of slow ones."""
    enough = 1 if session.first_ns >= _SLOW_NS else _CALLS
    return in_turn(session.batches, ceil(enough / len(session.batches)) * len(session.batches))


def _count_call(counter: Counter, stages: Sequence[Stage], batch: Batch) -> Counted:
    """Over the clocked stages, as the counted FLOPs are."""
    outputs: list[Any] = [batch]
    flops, share = 0.0, 1.0
    for stage in stages:
        work = partial(step, stage, outputs)
        if stage.clocked:
            counted = counter.count(work)
            flops, share = flops + counted.flops, min(share, counted.share)
        else:
            work()
    return Counted(flops=flops, share=share)


def _figure(backend: str, calls: Sequence[Counted]) -> Measurement:
    """Zero is never a figure: a call without floating-point arithmetic is one that these counters cannot see."""
    if any(call.flops <= 0 for call in calls):
        return Measurement.absent(
            metrics.FLOPS_HARDWARE,
            f"{backend}: a call retired no single or double precision arithmetic (integers are not counted)",
        )
    share = min(call.share for call in calls)
    notes = {"counted_share": round(share, 3)} if share < 1 else {}
    return Measurement.of(metrics.FLOPS_HARDWARE, [call.flops for call in calls], source=backend, notes=notes)
