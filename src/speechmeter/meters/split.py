"""What a call spends its time on, from a profiled pass: kernels, copies, the runtime, operators on the CPU, nothing.

Every moment belongs to the first of these that was running. For shares, never for latency. Imports torch late.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from speechmeter.core import metrics
from speechmeter.core.protocols import Meter, Phase, Session
from speechmeter.core.scope import BUSY, SPLIT, Scope
from speechmeter.core.types import Case, Measurement
from speechmeter.meters import torch_missing
from speechmeter.meters.recording.events import Events, Span, merged, overlap
from speechmeter.meters.recording.recording import Needs, Recording
from speechmeter.meters.recording.session import recording_of

KERNEL, MEMCPY, RUNTIME, CPU, IDLE = "kernel", "memcpy", "runtime", "cpu", "idle"
GPU = "gpu"
_NANOSECOND = 1e-9

Kinds = Mapping[str, Sequence[Span]]
"""Spans of every kind of work, in the order in which a moment is given to them."""
Seconds = dict[str, float]


class SplitMeter(Meter):
    """Seconds of a call by the first kind of work that was running, and how long CPU and GPU were busy."""

    name = "split"
    metrics = (metrics.TIME_SPLIT, metrics.TIME_BUSY)
    phase = Phase.PROFILE

    def unavailable(self, case: Case) -> str | None:
        """Needs torch. On a CPU there are operators and the rest; the profiler sees no compiled code there."""
        if case.axes.compile and not case.device.is_cuda:
            return (
                torch_missing()
                or "the profiler cannot see compiled code on a CPU, because it runs outside of torch operators"
            )
        return torch_missing()

    def needs(self, session: Session) -> Needs:
        """A few calls."""
        return Needs(means=True)

    def measure(self, session: Session) -> list[Measurement]:
        """What the recorded calls were spent on."""
        return split_rows([recording_of(session, self.needs(session))])


def split_rows(recordings: Sequence[Recording]) -> list[Measurement]:
    """What the steps of one or several recordings were spent on, one value a step."""
    on_cuda = any(recording.on_cuda for recording in recordings)
    work = [kinds_of(recording.events) for recording in recordings]
    if not any(kinds[kind] for kinds in work for kind in ((KERNEL, MEMCPY) if on_cuda else (CPU,))):
        what = "kernel" if on_cuda else "operator"
        return [Measurement.absent(metrics.TIME_SPLIT, f"the profiler saw no {what}")]
    steps = [(step, kinds) for recording, kinds in zip(recordings, work, strict=True) for step in recording.spans]
    split = [split_span(step, kinds) for step, kinds in steps]
    busy = [busy_span(step, kinds) for step, kinds in steps]
    shown = (KERNEL, MEMCPY, RUNTIME, CPU, IDLE) if on_cuda else (CPU, IDLE)
    workers = (CPU, GPU) if on_cuda else (CPU,)
    notes = {**recordings[0].notes, **recordings[0].sampled}
    return [
        *(
            Measurement.of(metrics.TIME_SPLIT, [one[kind] for one in split], scope=Scope.of(SPLIT, kind), notes=notes)
            for kind in shown
        ),
        *(
            Measurement.of(metrics.TIME_BUSY, [one[worker] for one in busy], scope=Scope.of(BUSY, worker), notes=notes)
            for worker in workers
        ),
    ]


def kinds_of(events: Events) -> dict[str, list[Span]]:
    """When each kind of work was under way: spans in order and apart. Ranges only name a stretch of time."""
    kernels, copies = (
        [(one.start_ns, one.end_ns) for one in events.kernels if one.copies is copies] for copies in (False, True)
    )
    cpu = [(one.start_ns, one.end_ns) for one in events.cpu if not one.is_range]
    spans = {KERNEL: kernels, MEMCPY: copies, RUNTIME: events.runtime, CPU: cpu}
    return {kind: merged(own) for kind, own in spans.items()}


def split_span(whole: Span, kinds: Kinds) -> Seconds:
    """Seconds in which each kind is the first that is running, in their order; the rest is idle."""
    found: Seconds = {}
    taken: list[Span] = []
    before = 0
    for kind, own in kinds.items():
        taken = merged([*taken, *_inside(whole, own)])
        together = overlap(whole, taken)
        found[kind] = (together - before) * _NANOSECOND
        before = together
    return {**found, IDLE: (whole[1] - whole[0] - before) * _NANOSECOND}


def busy_span(whole: Span, kinds: Kinds) -> Seconds:
    """Seconds in which the CPU and the GPU were at work. What a split hides, the CPU's work beside a kernel, counts."""
    workers = {CPU: (RUNTIME, CPU), GPU: (KERNEL, MEMCPY)}
    found: Seconds = {}
    for worker, own in workers.items():
        spans = merged(span for kind in own for span in _inside(whole, kinds.get(kind, ())))
        found[worker] = overlap(whole, spans) * _NANOSECOND
    return found


def _inside(whole: Span, spans: Sequence[Span]) -> list[Span]:
    """Those of some spans, which do not overlap and are in order, that overlap another one."""
    first = max(0, bisect_left(spans, (whole[0], 0)) - 1)
    return [span for span in spans[first : bisect_left(spans, (whole[1], 0))] if span[1] > whole[0]]
