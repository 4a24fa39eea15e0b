"""What a failure means for the record, and readings that are not numbers."""

from math import inf, nan

import pytest
from conftest import make_case

from speechmeter.core import metrics
from speechmeter.core.protocols import ORDINARY, Prepared
from speechmeter.core.types import Batch, Measurement, Stage
from speechmeter.engine.failures import classify, finite
from speechmeter.engine.measure import measure
from speechmeter.meters.latency import LatencyMeter


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (MemoryError(), "oom"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), "oom"),
        (RuntimeError("CUDA out of memory. Tried to allocate"), "oom"),
        (OSError("Cannot allocate memory"), "oom"),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), "oom"),
        (Exception("[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY"), "oom"),
        (RuntimeError("shape mismatch"), "error"),
        (ValueError("out of memory of names"), "error"),
        (SystemExit(3), "error"),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), "crashed"),
        (RuntimeError("CUDA error: device-side assert triggered\nCompile with"), "crashed"),
        (RuntimeError("CUDA error: unspecified launch failure"), "crashed"),
        (RuntimeError("CUDA error: out of memory"), "oom"),
        (RuntimeError("CUDA error: invalid device ordinal"), "error"),
        (ValueError("CUDA error: device-side assert triggered"), "error"),
    ],
)
def test_what_an_exception_means(error, status):
    assert classify(error)[0] == status


def test_the_reason_is_one_short_line_with_the_place():
    try:
        raise ValueError("a\nlong " + "x" * 5000)
    except ValueError as error:
        _, reason = classify(error)
    assert "\n" not in reason
    assert len(reason) <= 400
    assert reason.startswith("ValueError: a long")


def lost(*args):
    raise RuntimeError("CUDA error: an illegal memory access was encountered")


class Subject:
    """Works, or loses the device in its call or when it is closed."""

    def __init__(self, call=lambda batch: None, close=lambda: None):
        self._call, self._close, self.loads = call, close, 0

    def prepare(self, case, device):
        self.loads += 1
        return Prepared(stages=(Stage(name="model", fn=self._call),), close=self._close)

    def batches(self, case):
        yield Batch(data=None, items=1)


def measured(subject, **options):
    return measure(make_case(), subject, subject, [LatencyMeter()], **options)


def test_a_lost_device_is_not_tried_again_in_the_same_process():
    subject = Subject(call=lost)
    outcome = measured(subject, ways=(*ORDINARY, *ORDINARY))
    assert (outcome.status, subject.loads) == ("crashed", 1)
    assert outcome.reason.startswith("this process can no longer use the GPU: CUDA error: an illegal memory access")


def test_another_error_is_tried_again_in_the_next_way():
    subject = Subject(call=lambda batch: 1 / 0)
    assert (measured(subject, ways=(*ORDINARY, *ORDINARY)).status, subject.loads) == ("error", 2)


def test_closing_that_fails_does_not_take_the_readings_with_it():
    outcome = measured(Subject(close=lost))
    assert outcome.status == "ok"
    assert any(m.metric == "latency.v1" and m.values for m in outcome.measurements)
    assert any("closing the model failed" in warning for warning in outcome.warnings)


def test_an_environment_that_cannot_be_asked_for_is_left_out(monkeypatch):
    monkeypatch.setattr("speechmeter.engine.measure.capture", lost)
    outcome = measured(Subject())
    assert (outcome.status, outcome.environment) == ("ok", None)


@pytest.mark.parametrize("bad", [nan, inf, -inf])
def test_a_reading_that_is_no_number_makes_the_metric_unavailable(bad):
    found = finite(Measurement.of(metrics.LATENCY, [1.0, bad]))
    assert found.values == ()
    assert str(bad) in found.unavailable


def test_notes_say_in_words_what_no_number_can():
    found = finite(Measurement.of(metrics.LATENCY, [1.0], notes={"a": nan, "b": [1.5, {"c": inf}], "d": "x"}))
    assert found.values == (1.0,)
    assert found.notes == {"a": "nan", "b": [1.5, {"c": "inf"}], "d": "x"}
