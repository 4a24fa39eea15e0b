"""A second source of FLOPs: what the processor itself counted. Rarely available, and independent of every formula."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import ceil
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.batches import in_turn
from speechmeter.core.errors import SensorError
from speechmeter.core.protocols import Meter, Session
from speechmeter.core.stages import step
from speechmeter.core.types import Batch, Case, Measurement, Stage
from speechmeter.meters.hardware_flops.counters import Backend, Choice, Counted, Counter, choose
from speechmeter.meters.hardware_flops.papi import PapiBackend
from speechmeter.meters.hardware_flops.perf import PerfBackend

BACKENDS: tuple[Backend, ...] = (PerfBackend(), PapiBackend())
"""perf first: it follows threads that start during a call."""
_CALLS = 3
_SLOW_NS = 5 * 10**9
_COUNTED_DTYPES = ("float32", "float64")

_ELEMENTS = 1 << 14
_ROUNDS = 600
KNOWN_FLOPS = 2 * _ELEMENTS * _ROUNDS
"""About ten milliseconds: events that share a counter take turns every few milliseconds."""
_TOLERANCE = 0.2


def check_known_work(counter: Counter) -> None:
    """Raise SensorError for a counter that reads zero, or far from the truth, over known work.

    A list of events does not show whether they count: virtual machines list events that stay at zero.
    """
    import numpy as np  # here: its threads must not start while a counter counts

    single: Any = np.ones(_ELEMENTS, np.float32)
    double: Any = np.ones(_ELEMENTS, np.float64)

    def multiply() -> None:
        for _ in range(_ROUNDS):
            np.multiply(single, single, out=single)
            np.multiply(double, double, out=double)

    flops = counter.count(multiply).flops
    if flops <= 0:
        raise SensorError(f"the counter opens but reads 0 after {KNOWN_FLOPS} multiplications")
    if abs(flops / KNOWN_FLOPS - 1) > _TOLERANCE:
        raise SensorError(f"the counter reads {flops:.0f} after {KNOWN_FLOPS} multiplications")


class HardwareFlopsMeter(Meter):
    """Floating-point operations of a call on the CPU, by the first back-end whose counter passes a known workload."""

    name = "hardware-flops"
    metrics = (metrics.FLOPS_HARDWARE,)

    def __init__(
        self, *, backends: Sequence[Backend] = BACKENDS, check: Callable[[Counter], None] = check_known_work
    ) -> None:
        self._backends = backends
        self._check = check

    def unavailable(self, case: Case) -> str | None:
        """What the counters cannot count in this case, or why no back-end can be opened here and read."""
        if not case.device.is_cpu:
            return "hardware counters count only the arithmetic of the processor, and this case runs on a GPU"
        dtype = case.axes.dtype or "float32"
        if dtype not in _COUNTED_DTYPES:
            return f"counts single and double precision only, and this case computes in {dtype}"
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
        # whole passes over the batches, three calls or more; one pass of slow ones
        enough = 1 if session.first_ns >= _SLOW_NS else _CALLS
        batches = in_turn(session.batches, ceil(enough / len(session.batches)) * len(session.batches))
        try:
            calls = [_count_call(choice.counter, session.stages, batch) for batch in batches]
        except SensorError as error:
            return [Measurement.absent(metrics.FLOPS_HARDWARE, f"{choice.name}: {error}")]
        finally:
            choice.counter.close()
        if any(call.flops <= 0 for call in calls):  # zero is no figure: these counters cannot see such a call
            why = "a call did no single or double precision arithmetic (integers are not counted)"
            return [Measurement.absent(metrics.FLOPS_HARDWARE, f"{choice.name}: {why}")]
        share = min(call.share for call in calls)
        notes = {"counted_share": round(share, 3)} if share < 1 else {}
        values = [call.flops for call in calls]
        return [Measurement.of(metrics.FLOPS_HARDWARE, values, source=choice.name, notes=notes)]

    def _choose(self) -> Choice:
        return choose(self._backends, self._check)


def _count_call(counter: Counter, stages: Sequence[Stage], batch: Batch) -> Counted:
    """Over the clocked stages, as the FLOPs by formula are."""
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
