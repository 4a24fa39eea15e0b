"""The fused losses on the CPU, by Triton's interpreter; `conftest` asks for it where there is no GPU."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

pytest.importorskip("triton", reason="triton is not installed: pip install triton")
pytest.importorskip("torch", reason="needs torch")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("kernels are compiled here: see tests/gpu", allow_module_level=True)

from speechmeter.transducer import engines
from speechmeter.transducer.fused import joint, rows


@contextmanager
def fused() -> Iterator[None]:
    """Compute by the fused kernels."""
    engine = engines.fused()
    assert engine is not None
    with engines.only(engine):
        yield


__all__ = ["fused", "joint", "rows"]
