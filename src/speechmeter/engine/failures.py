"""What an exception inside a measurement means for the record, and readings that are not numbers."""

from __future__ import annotations

import traceback
from dataclasses import replace
from math import isfinite
from typing import Any

from speechmeter.core.errors import SpeechmeterError
from speechmeter.core.types import Measurement, Status

_OUT_OF_MEMORY = ("can't allocate memory", "out of memory", "cannot allocate memory", "unable to allocate")
_LOST = (
    "illegal memory access",
    "device-side assert",
    "unspecified launch failure",
    "misaligned address",
    "illegal instruction",
    "uncorrectable ecc",
    "launch timed out",
    "hardware stack error",
    "illegal address space",
    "invalid program counter",
)
"""CUDA errors after which every further call of the process fails: only a new process gets the device back."""
_REASON_LENGTH = 400
_MEMORY_LENGTH = 1000
"""What torch says when memory runs out ends with what lay unused, behind a line for each other process."""


def classify(error: BaseException) -> tuple[Status, str]:
    """(status, one-line reason) for whatever a subject, workload or meter raised."""
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError) or _says_out_of_memory(error, text):
        return "oom", _shorten(text or "out of memory", _MEMORY_LENGTH)
    if isinstance(error, RuntimeError) and "cuda" in text.lower() and any(sign in text.lower() for sign in _LOST):
        return "crashed", _shorten(f"this process can no longer use the GPU: {text} ({_line(error)})")
    if isinstance(error, SystemExit):
        return "error", f"the model's code called sys.exit: SystemExit({error.code!r})"
    if isinstance(error, SpeechmeterError):  # made for a reader: neither class nor line adds to it
        return "error", _shorten(text)
    return "error", _shorten(f"{type(error).__name__}: {text} ({_line(error)})")


def _says_out_of_memory(error: BaseException, text: str) -> bool:
    # torch raises RuntimeError "... can't allocate memory" on CPU and OutOfMemoryError on CUDA, never MemoryError;
    # cuBLAS and cuDNN (…_STATUS_ALLOC_FAILED) and the driver, as numba hands it on, have names of their own for it
    if any(name in text for name in ("_STATUS_ALLOC_FAILED", "CUDA_ERROR_OUT_OF_MEMORY")):
        return True
    return isinstance(error, RuntimeError | OSError) and any(sign in text.lower() for sign in _OUT_OF_MEMORY)


def _line(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return "no traceback"
    return f"{frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno} in {frames[-1].name}"


def _shorten(text: str, most: int = _REASON_LENGTH) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def finite(measurement: Measurement) -> Measurement:
    """The measurement as it is; unavailable, with the reason, where a value is NaN or infinite.

    Records hold finite numbers alone, so that every reader of JSON can read them.
    """
    bad = next((value for value in measurement.values if not isfinite(value)), None)
    if bad is not None:
        measurement = replace(measurement, values=(), unavailable=f"a reading was {bad}, not a finite number")
    return replace(measurement, notes=_plain(measurement.notes)) if measurement.notes else measurement


def _plain(value: Any) -> Any:
    """Notes with text in place of NaN and infinity: JSON has neither."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return str(value) if isinstance(value, float) and not isfinite(value) else value
