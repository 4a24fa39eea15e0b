"""What a call spends its time on, from a profiled pass: kernels, copies, the runtime, operators on the CPU, nothing.

Every moment belongs to the first of these that was under way. For shares, never for latency. Imports torch late.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.protocols import MAIN, ORDINARY, Session
from speechmeter.core.traces import STEP
from speechmeter.core.types import Case, Measurement
from speechmeter.meters.modules.names import CALL, OURS

KERNEL, MEMCPY, RUNTIME, CPU, IDLE = "kernel", "memcpy", "runtime", "cpu", "idle"
GPU = "gpu"
_COPIES = ("Memcpy", "Memset")
_MOST_CALLS = 5
"""The profiler keeps every kernel of every call: a loss without fused kernels has thousands of them."""
_MICROSECOND = 1e-6

Span = tuple[float, float]
Kinds = Mapping[str, Sequence[Span]]


class SplitMeter:
    """Seconds of an average call by the first kind of work that was under way, and how long CPU and GPU were busy."""

    name = "split"
    metrics = (metrics.TIME_SPLIT, metrics.TIME_BUSY)
    environ: Mapping[str, str] = MappingProxyType({})
    ways = ORDINARY

    def process(self, case: Case) -> str:
        """Shares the main process; list it last, because it profiles."""
        return MAIN

    def unavailable(self, case: Case) -> str | None:
        """Needs torch. On a CPU there are operators and the rest; compiled code there is not seen at all."""
        if find_spec("torch") is None:
            return "calls are split by torch's profiler, and torch is not installed"
        if case.axes.get("compile") and not _on_cuda(case):
            return "compiled code on a CPU runs outside of operators: the profiler does not see it"
        return None

    def measure(self, session: Session) -> list[Measurement]:
        """One pass over the batches, as far as five calls, profiled after a call that is left out."""
        batches = [session.batches[place] for place in range(min(_MOST_CALLS, len(session.batches)))]
        on_cuda = _on_cuda(session.case)
        return split_rows(*sorted_spans(_profiled(session, batches, on_cuda)), on_cuda=on_cuda)


def split_rows(whole: Sequence[Span], spans: Kinds, *, on_cuda: bool) -> list[Measurement]:
    """What calls were spent on, from their spans and those of every kind of work."""
    if not any(spans[kind] for kind in ((KERNEL, MEMCPY) if on_cuda else (CPU,))):
        what = "kernel" if on_cuda else "operator"
        return [Measurement.absent(metrics.TIME_SPLIT, f"the profiler saw no {what}")]
    return [*_split(whole, spans, on_cuda), *_busy(whole, spans, on_cuda)]


def _split(whole: Sequence[Span], spans: Kinds, on_cuda: bool) -> list[Measurement]:
    calls = [split_span(call, spans) for call in whole]
    kinds = (KERNEL, MEMCPY, RUNTIME, CPU, IDLE) if on_cuda else (CPU, IDLE)
    return [
        Measurement.of(metrics.TIME_SPLIT, [call[kind] * _MICROSECOND for call in calls], scope=f"split:{kind}")
        for kind in kinds
    ]


def _busy(whole: Sequence[Span], spans: Kinds, on_cuda: bool) -> list[Measurement]:
    """What the split hides: the CPU's work beside a kernel counts here too."""
    workers = {CPU: (RUNTIME, CPU), **({GPU: (KERNEL, MEMCPY)} if on_cuda else {})}
    return [
        Measurement.of(
            metrics.TIME_BUSY,
            [covered(call, [span for kind in kinds for span in spans[kind]]) * _MICROSECOND for call in whole],
            scope=f"busy:{worker}",
        )
        for worker, kinds in workers.items()
    ]


def _on_cuda(case: Case) -> bool:
    return str(case.axes["device"]).startswith("cuda")


def _profiled(session: Session, batches: Sequence[Any], on_cuda: bool) -> list[Any]:
    from torch.profiler import ProfilerActivity, profile, record_function

    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_cuda else [])]
    with profile(activities=activities) as profiled:
        session.call(batches[0])  # pays for the profiler's start, and lies outside of every mark
        session.sync()
        for place, batch in enumerate(batches):
            with record_function(f"{CALL}{place}"):
                session.call(batch)
                session.sync()
    return list(profiled.events())


def sorted_spans(events: Iterable[Any]) -> tuple[list[Span], dict[str, list[Span]]]:
    """The spans of the marked calls in order, and those of every kind of work; microseconds."""
    from torch.autograd import DeviceType

    spans: dict[str, list[Span]] = {KERNEL: [], MEMCPY: [], RUNTIME: [], CPU: []}
    calls: list[Span] = []
    for event in events:
        span = (float(event.time_range.start), float(event.time_range.end))
        on_cpu = event.device_type == DeviceType.CPU
        if event.name.startswith(OURS):  # the profiler shows ranges on the GPU too
            calls += [span] if on_cpu and event.name.startswith(CALL) else []
        elif _is_mark(event):
            continue
        elif not on_cpu:
            spans[MEMCPY if event.name.startswith(_COPIES) else KERNEL].append(span)
        else:
            spans[RUNTIME if event.name.startswith("cu") else CPU].append(span)
    return sorted(calls), spans


def _is_mark(event: Any) -> bool:
    """Whether somebody only named a stretch of time."""
    return bool(getattr(event, "is_user_annotation", False)) or event.name.startswith(STEP)


def split_span(whole: Span, spans: Kinds) -> dict[str, float]:
    """How long each kind is the first that is under way, in their order; the rest is idle. Same unit as the spans."""
    found: dict[str, float] = {}
    taken: list[Span] = []
    before = 0.0
    for kind, own in spans.items():
        taken += own
        together = covered(whole, taken)
        found[kind] = together - before
        before = together
    return {**found, IDLE: whole[1] - whole[0] - before}


def covered(whole: Span, spans: Iterable[Span]) -> float:
    """How much of a span lies inside at least one of the others."""
    total, until = 0.0, whole[0]
    for start, end in sorted(spans):
        total += max(0.0, min(end, whole[1]) - max(start, until))
        until = max(until, min(end, whole[1]))
    return total
