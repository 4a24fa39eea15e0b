"""Splitting a call: spans on paper, and the profiler's events as far as this machine makes them."""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
from conftest import make_case, make_record  # noqa: E402
from torch.autograd import DeviceType  # noqa: E402

from speechmeter.analysis.estimate import estimate  # noqa: E402
from speechmeter.core import metrics  # noqa: E402
from speechmeter.core.types import Measurement  # noqa: E402
from speechmeter.meters.split import SplitMeter, covered, sorted_spans, split_span  # noqa: E402


def test_every_moment_belongs_to_the_first_kind_that_is_under_way():
    spans = {"kernel": [(2.0, 4.0), (3.0, 5.0)], "memcpy": [(4.5, 5.5)], "runtime": [(1.0, 3.0)], "cpu": [(0.0, 6.0)]}
    assert split_span((0.0, 10.0), spans) == {"kernel": 3.0, "memcpy": 0.5, "runtime": 1.0, "cpu": 1.5, "idle": 4.0}


def test_only_what_lies_inside_the_call_counts():
    found = split_span((5.0, 7.0), {"kernel": [(0.0, 6.0), (8.0, 9.0)], "runtime": [], "cpu": [(6.5, 20.0)]})
    assert found == {"kernel": 1.0, "runtime": 0.0, "cpu": 0.5, "idle": 0.5}


def test_overlapping_spans_are_covered_once():
    assert covered((0.0, 10.0), [(1.0, 4.0), (3.0, 5.0), (9.0, 12.0), (-3.0, 0.5)]) == 5.5


def event(name, start, end, device=DeviceType.CPU):
    return SimpleNamespace(name=name, time_range=SimpleNamespace(start=start, end=end), device_type=device)


def test_calls_and_kinds_are_told_apart():
    calls, spans = sorted_spans(
        [
            event("speechmeter.call::0", 20, 24),
            event("speechmeter.call::0", 0, 10),
            event("speechmeter.call::0", 2, 9, DeviceType.CUDA),
            event("aten::mm", 0, 4),
            event("cudaLaunchKernel", 1, 2),
            event("ampere_sgemm", 3, 9, DeviceType.CUDA),
            event("Memcpy HtoD (Pageable -> Device)", 21, 22, DeviceType.CUDA),
        ]
    )
    assert calls == [(0, 10), (20, 24)]
    assert spans == {"kernel": [(3, 9)], "memcpy": [(21, 22)], "runtime": [(1, 2)], "cpu": [(0, 4)]}


def test_on_a_cpu_operators_and_the_rest_add_up_to_the_call():
    net, x = torch.nn.Linear(8, 8), torch.randn(4, 8)
    session = SimpleNamespace(case=make_case(), batches=[x, x], call=net, sync=lambda: None)
    found = {m.scope: m for m in SplitMeter().measure(session)}
    assert set(found) == {"split:cpu", "split:idle", "busy:cpu"}
    assert all(len(m.values) == 2 and min(m.values) >= 0 for m in found.values())
    assert found["busy:cpu"].values == pytest.approx(found["split:cpu"].values)


def test_without_an_operator_there_is_nothing_to_split():
    session = SimpleNamespace(case=make_case(), batches=[0], call=lambda batch: batch, sync=lambda: None)
    (found,) = SplitMeter().measure(session)
    assert found.unavailable == "the profiler saw no operator"


def test_compiled_code_on_a_cpu_cannot_be_split():
    assert "does not see it" in str(SplitMeter().unavailable(make_case(compile=True)))
    assert SplitMeter().unavailable(make_case(compile=True, device="cuda")) is None


def profiled(**values):
    split = {"kernel": 2.0, "memcpy": 1.0, "runtime": 0.5, "cpu": 1.5, "idle": 5.0}
    return make_record(
        make_case(device="cuda"),
        Measurement.of(metrics.AUDIO_SECONDS, [10.0, 20.0]),
        Measurement.of(metrics.LATENCY, [6.0, 6.0]),
        *(Measurement.of(metrics.TIME_SPLIT, [time], scope=f"split:{kind}") for kind, time in split.items()),
        Measurement.of(metrics.TIME_BUSY, [1.0, 5.0], scope="busy:cpu"),
        Measurement.of(metrics.TIME_BUSY, [1.0, 2.0], scope="busy:gpu"),
    )


def test_busy_time_is_held_against_the_audio_of_the_same_calls():
    record = profiled()
    assert estimate([record], metrics.RTF_CPU).value == pytest.approx(6 / 30)
    assert estimate([record], metrics.RTF_GPU).value == pytest.approx(3 / 30)


def test_an_idle_gpu_is_whatever_is_neither_kernel_nor_copy():
    assert estimate([profiled()], metrics.GPU_IDLE).value == pytest.approx(7 / 10)


def test_launch_bound_takes_the_busy_time_of_either_meter():
    record = profiled()
    assert estimate([record], metrics.LAUNCH_BOUND).value == pytest.approx(6 / 1.5)
    other = make_record(
        record.case, *record.measurements, Measurement.of(metrics.TIME_GPU, [3.0], source="torch.profiler")
    )
    assert estimate([other], metrics.LAUNCH_BOUND).value == pytest.approx(2.0)
