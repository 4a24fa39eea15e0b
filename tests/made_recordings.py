"""Recordings made by hand, in microseconds: what a profiler would have seen, on machines that have no GPU too."""

from __future__ import annotations

from speechmeter.core.traces import STEP
from speechmeter.meters.recording.events import USER_SCOPE, Allocation, CpuEvent, Events, Kernel
from speechmeter.meters.recording.label import CALL, MODULE
from speechmeter.meters.recording.recording import Needs, Recording

MAIN = 1


def event(name, start_us, end_us, **more):
    """An operator, a node or a range."""
    return CpuEvent(name=name, start_ns=start_us * 1000, end_ns=end_us * 1000, **{"thread": MAIN, **more})


def module(path, start_us, end_us):
    """A call of a module."""
    return event(MODULE + path, start_us, end_us)


def kernel(start_us, end_us, by=0, copies=False):
    """What a GPU did by order of the event with that id."""
    return Kernel(start_ns=start_us * 1000, end_ns=end_us * 1000, launched_by=by, copies=copies)


def allocation(at_us, size, *, on_gpu=False, thread=MAIN):
    """Bytes taken, or given back."""
    return Allocation(at_ns=at_us * 1000, thread=thread, bytes=size, on_gpu=on_gpu)


def made(*cpu, kernels=(), runtime=(), memory=(), steps=((0, 100),), calls=False):
    """A finished recording of these events in these steps, each of them a call as well if `calls`."""
    marks = [event(f"{STEP}{n}", *span, scope=USER_SCOPE) for n, span in enumerate(steps)]
    marks += [event(f"{CALL}{n}", *span) for n, span in enumerate(steps) if calls]
    spans = tuple((start * 1000, end * 1000) for start, end in runtime)
    return Recording(
        profile=None,
        events=Events(cpu=(*marks, *cpu), kernels=tuple(kernels), runtime=spans, memory=tuple(memory)),
        steps=len(steps),
        classes={},
        needs=Needs(modules=True, means=True),
        on_cuda=bool(kernels),
    )
