"""Splitting a call: spans on paper, and the profiler's events as far as this machine makes them."""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
from conftest import make_case  # noqa: E402
from torch.autograd import DeviceType  # noqa: E402

from speechmeter.meters.split import SplitMeter, split_calls, split_span  # noqa: E402


def test_every_moment_belongs_to_the_first_kind_that_is_under_way():
    spans = {"kernel": [(2.0, 4.0), (3.0, 5.0)], "runtime": [(1.0, 3.0)], "cpu": [(0.0, 6.0)]}
    assert split_span((0.0, 10.0), spans) == {"kernel": 3.0, "runtime": 1.0, "cpu": 2.0, "idle": 4.0}


def test_only_what_lies_inside_the_call_counts():
    found = split_span((5.0, 7.0), {"kernel": [(0.0, 6.0), (8.0, 9.0)], "runtime": [], "cpu": [(6.5, 20.0)]})
    assert found == {"kernel": 1.0, "runtime": 0.0, "cpu": 0.5, "idle": 0.5}


def event(name, start, end, device=DeviceType.CPU):
    return SimpleNamespace(name=name, time_range=SimpleNamespace(start=start, end=end), device_type=device)


def test_calls_are_told_apart_by_their_marks():
    events = [
        event("speechmeter.call", 0, 10),
        event("speechmeter.call", 2, 9, DeviceType.CUDA),
        event("aten::mm", 0, 4),
        event("cudaLaunchKernel", 1, 2),
        event("ampere_sgemm", 3, 9, DeviceType.CUDA),
        event("speechmeter.call", 20, 24),
        event("void add", 21, 22, DeviceType.CUDA),
    ]
    first, second = split_calls(events)
    assert first == pytest.approx({"kernel": 6e-6, "runtime": 1e-6, "cpu": 2e-6, "idle": 1e-6})
    assert second == pytest.approx({"kernel": 1e-6, "runtime": 0.0, "cpu": 0.0, "idle": 3e-6})


def test_without_a_kernel_there_is_nothing_to_split():
    assert split_calls([event("speechmeter.call", 0, 10), event("aten::mm", 0, 4)]) == []
    assert "GPU only" in str(SplitMeter().unavailable(make_case("mine")))
