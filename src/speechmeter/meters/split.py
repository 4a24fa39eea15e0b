"""What a call on a GPU spends its time on, from a profiled pass: kernels, the runtime, operators on the CPU, nothing.

Every moment belongs to the first of these that was under way. For shares, never for latency. Imports torch late.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.protocols import MAIN, ORDINARY, Session
from speechmeter.core.types import Case, Measurement

KERNEL, RUNTIME, CPU, IDLE = "kernel", "runtime", "cpu", "idle"
_CALL = "speechmeter.call"
_MOST_CALLS = 5
"""The profiler keeps every kernel of every call: a loss without fused kernels has thousands of them."""
_MICROSECOND = 1e-6

Span = tuple[float, float]


class SplitMeter:
    """Seconds of an average call in which a kernel ran, else the runtime, else the CPU, else nothing."""

    name = "split"
    metrics = (metrics.TIME_SPLIT,)
    environ: Mapping[str, str] = MappingProxyType({})
    ways = ORDINARY

    def process(self, case: Case) -> str:
        """Shares the main process; list it last, because it profiles."""
        return MAIN

    def unavailable(self, case: Case) -> str | None:
        """Needs torch and a GPU: on a CPU there are no kernels to tell from the rest."""
        if find_spec("torch") is None:
            return "calls are split by torch's profiler, and torch is not installed"
        if not str(case.axes["device"]).startswith("cuda"):
            return "kernels and the CPU's work can be told apart on a GPU only"
        return None

    def measure(self, session: Session) -> list[Measurement]:
        """One pass over the batches, as far as five calls, profiled after a call that is not."""
        batches = [session.batches[place] for place in range(min(_MOST_CALLS, len(session.batches)))]
        shares = split_calls(_profiled(session, batches))
        if not shares:
            return [Measurement.absent(metrics.TIME_SPLIT, "the profiler saw no kernel")]
        return [
            Measurement.of(metrics.TIME_SPLIT, [call[kind] for call in shares], scope=f"split:{kind}")
            for kind in (KERNEL, RUNTIME, CPU, IDLE)
        ]


def _profiled(session: Session, batches: Sequence[Any]) -> list[Any]:
    from torch.profiler import ProfilerActivity, profile, record_function

    session.call(batches[0])
    session.sync()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled:
        for batch in batches:
            with record_function(_CALL):
                session.call(batch)
                session.sync()
    return list(profiled.events())


def split_calls(events: Iterable[Any]) -> list[dict[str, float]]:
    """Seconds of each marked call by kind; empty when no kernel was seen."""
    from torch.autograd import DeviceType

    spans: dict[str, list[Span]] = {KERNEL: [], RUNTIME: [], CPU: []}
    calls: list[Span] = []
    for event in events:
        span = (float(event.time_range.start), float(event.time_range.end))
        on_cpu = event.device_type == DeviceType.CPU
        if event.name == _CALL:
            calls += [span] if on_cpu else []  # the profiler shows the mark on the GPU too
        elif not on_cpu:
            spans[KERNEL].append(span)
        else:
            spans[RUNTIME if event.name.startswith("cu") else CPU].append(span)
    if not spans[KERNEL]:
        return []
    return [{kind: time * _MICROSECOND for kind, time in split_span(call, spans).items()} for call in sorted(calls)]


def split_span(whole: Span, spans: Mapping[str, Sequence[Span]]) -> dict[str, float]:
    """How long each kind is the first that is under way, in their order; the rest is idle. Same unit as the spans."""
    found: dict[str, float] = {}
    taken: list[Span] = []
    before = 0.0
    for kind, own in spans.items():
        taken += [(max(start, whole[0]), min(end, whole[1])) for start, end in own]
        covered = _covered(taken)
        found[kind] = covered - before
        before = covered
    return {**found, IDLE: whole[1] - whole[0] - before}


def _covered(spans: Iterable[Span]) -> float:
    total, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total
