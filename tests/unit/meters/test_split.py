"""Splitting a call: spans on paper, and the profiler's events as far as this machine makes them."""

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
from conftest import make_case, make_record  # noqa: E402
from made_recordings import event, kernel, made, module  # noqa: E402

from speechmeter.analysis.estimate import estimate  # noqa: E402
from speechmeter.core import metrics  # noqa: E402
from speechmeter.core.protocols import Phase, Prepared  # noqa: E402
from speechmeter.core.types import Batch, Measurement, Stage  # noqa: E402
from speechmeter.engine.measure import measure  # noqa: E402
from speechmeter.meters.split import SplitMeter, busy_span, split_rows, split_span  # noqa: E402

S = 10**9
"""Nanoseconds in a second."""


def seconds(**kinds):
    return {kind: [(round(start * S), round(end * S)) for start, end in spans] for kind, spans in kinds.items()}


def test_every_moment_belongs_to_the_first_kind_that_is_under_way():
    spans = seconds(kernel=[(2.0, 4.0), (3.0, 5.0)], memcpy=[(4.5, 5.5)], runtime=[(1.0, 3.0)], cpu=[(0.0, 6.0)])
    found = split_span((0, 10 * S), spans)
    assert found == pytest.approx({"kernel": 3.0, "memcpy": 0.5, "runtime": 1.0, "cpu": 1.5, "idle": 4.0})


def test_only_what_lies_inside_the_call_counts():
    found = split_span((5 * S, 7 * S), seconds(kernel=[(0.0, 6.0), (8.0, 9.0)], runtime=[], cpu=[(6.5, 20.0)]))
    assert found == pytest.approx({"kernel": 1.0, "runtime": 0.0, "cpu": 0.5, "idle": 0.5})


def test_overlapping_work_is_busy_time_once_and_the_cpu_is_busy_beside_a_kernel():
    spans = seconds(kernel=[(1.0, 4.0), (3.0, 5.0)], memcpy=[(9.0, 12.0)], runtime=[(1.0, 2.0)], cpu=[(0.0, 1.5)])
    assert busy_span((0, 10 * S), spans) == pytest.approx({"cpu": 2.0, "gpu": 5.0})


def test_kinds_are_told_apart_in_every_step():
    recording = made(
        module("net", 0, 10),
        event("theirs", 0, 10, scope=7),
        event("aten::mm", 0, 4),
        runtime=[(1, 2), (20, 21)],
        kernels=(kernel(3, 9), kernel(21, 22, copies=True)),
        steps=((0, 10), (20, 24)),
    )
    found = {m.scope: [round(value * 1e6, 3) for value in m.values] for m in split_rows([recording])}
    assert found == {
        "split:kernel": [6, 0],
        "split:memcpy": [0, 1],
        "split:runtime": [1, 1],
        "split:cpu": [2, 0],
        "split:idle": [1, 2],
        "busy:cpu": [4, 1],
        "busy:gpu": [6, 1],
    }


def readings(fn, batches=2):
    class Subject:
        def prepare(self, case, device):
            return Prepared(stages=(Stage(name="model", fn=fn),))

        def batches(self, case):
            yield from (Batch(data=torch.randn(4, 8), items=1) for _ in range(batches))

    outcome = measure(make_case(), Subject(), Subject(), [SplitMeter()])
    assert outcome.status == "ok", outcome.reason
    return {m.scope: m for m in outcome.measurements if m.metric in ("time_split.v2", "time_busy.v1")}


def test_on_a_cpu_operators_and_the_rest_add_up_to_the_call():
    net = torch.nn.Linear(8, 8)
    found = readings(lambda batch: net(batch.data))
    assert set(found) == {"split:cpu", "split:idle", "busy:cpu"}
    assert all(len(m.values) == 4 and min(m.values) >= 0 for m in found.values())  # two passes over two batches
    assert found["busy:cpu"].values == pytest.approx(found["split:cpu"].values)
    assert found["split:cpu"].notes["recorded"] == ["CPU"]


def test_without_an_operator_there_is_nothing_to_split():
    (found,) = readings(lambda batch: None, batches=1).values()
    assert found.unavailable == "the profiler saw no operator"


def test_it_runs_where_nothing_is_timed():
    assert SplitMeter().phase is Phase.PROFILE


def test_compiled_code_on_a_cpu_cannot_be_split():
    assert "cannot see compiled code" in str(SplitMeter().unavailable(make_case(compile=True)))
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
