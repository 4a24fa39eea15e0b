import pytest

from speechmeter.engine.failures import classify


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
