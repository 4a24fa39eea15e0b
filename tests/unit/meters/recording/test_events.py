"""Torch's own event objects sorted out (those of a GPU made by hand), and arithmetic on spans of time."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="the device types are torch's")
from torch.autograd import DeviceType  # noqa: E402

from speechmeter.meters.recording.events import (  # noqa: E402
    USER_SCOPE,
    Allocation,
    Events,
    Kernel,
    gaps,
    merged,
    shared_out,
    sorted_out,
)


def raw(name, start, length, *, device=DeviceType.CPU, annotation=False, python=False, asynchronous=False, **facts):
    """As kineto gives them: everything is a method."""
    values = {
        "name": name, "start_ns": start, "duration_ns": length, "device_type": device, "is_user_annotation": annotation,
        "is_python_function": python, "is_async": asynchronous, "correlation_id": 0, "linked_correlation_id": 0,
        "start_thread_id": 1, "fwd_thread_id": 0, "sequence_nr": -1, "scope": 0, **facts,
    }  # fmt: skip
    return SimpleNamespace(**{key: (lambda value=value: value) for key, value in values.items()})


def on_gpu(name, start, length, by=0, **facts):
    return raw(name, start, length, device=DeviceType.CUDA, linked_correlation_id=by, **facts)


def test_kernels_copies_and_the_runtime_are_told_apart_and_waits_and_ranges_left_out():
    found = sorted_out(
        [
            raw("aten::mm", 0, 10, correlation_id=7, sequence_nr=3),
            raw("cudaLaunchKernel", 2, 3, linked_correlation_id=7),
            raw("cuLaunchKernelEx", 6, 1),
            raw("cudaDeviceSynchronize", 20, 30),
            raw("[memory]", 4, 0, nbytes=64),
            on_gpu("[memory]", 5, 0, nbytes=-32),
            raw("a function of Python", 0, 100, python=True),
            raw("something that goes on", 0, 100, asynchronous=True),
            raw("theirs", 0, 50, scope=USER_SCOPE, annotation=True),
            on_gpu("ampere_sgemm_128x64_tn", 12, 20, by=7),
            on_gpu("Memcpy HtoD (Pageable -> Device)", 40, 5, by=7),
            on_gpu("Memset (Device)", 46, 1),
            on_gpu("theirs", 12, 30, annotation=True),
            on_gpu("speechmeter.module::net", 12, 30),
            on_gpu("Context Sync", 20, 30),
            on_gpu("Stream Wait Event", 50, 3),
        ]
    )
    assert [(event.name, event.start_ns, event.end_ns) for event in found.cpu] == [
        ("aten::mm", 0, 10),
        ("theirs", 0, 50),
    ]
    assert [event.is_range for event in found.cpu] == [False, True]
    assert found.runtime == ((2, 5), (6, 7), (20, 50))
    assert found.memory == (
        Allocation(at_ns=4, thread=1, bytes=64),
        Allocation(at_ns=5, thread=1, bytes=-32, on_gpu=True),
    )
    assert found.kernels == (
        Kernel(start_ns=12, end_ns=32, launched_by=7),
        Kernel(start_ns=40, end_ns=45, launched_by=7, copies=True),
        Kernel(start_ns=46, end_ns=47, launched_by=0, copies=True),
    )


def test_work_of_an_unknown_giver_of_orders_is_nobodys():
    kernels = (Kernel(start_ns=0, end_ns=5, launched_by=0), Kernel(start_ns=3, end_ns=9, launched_by=4))
    assert Events(cpu=(), kernels=kernels).kernel_ns() == {4: 6}


SPANS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 10)).map(lambda pair: (pair[0], sum(pair))), max_size=8)


def instants(spans):
    return {instant for start, end in spans for instant in range(start, end)}


@given(SPANS)
def test_merged_spans_are_the_same_instants_and_apart(spans):
    found = merged(spans)
    assert instants(found) == instants(spans)
    assert all(before[1] < after[0] for before, after in pairwise(found))


@given(SPANS)
def test_gaps_are_what_is_left(spans):
    inside = [(start, min(end, 40)) for start, end in spans]
    assert instants(gaps((0, 40), inside)) == set(range(40)) - instants(inside)


@given(SPANS)
def test_shared_instants_are_split_evenly(spans):
    owned = [(start, end, number % 3) for number, (start, end) in enumerate(spans)]
    expected: Counter[int] = Counter()
    for instant in range(45):
        running = [who for start, end, who in owned if start <= instant < end]
        for who in running:
            expected[who] += 1 / len(running)
    found = shared_out(owned)
    assert {who: round(time, 6) for who, time in found.items()} == {w: round(t, 6) for w, t in expected.items()}
