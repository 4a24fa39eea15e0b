"""Which engine computes, what it holds in memory, and the parts that only one of them has."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from transducer_cases import ENGINES, NEEDS_NUMBA

from speechmeter.meters.memory import MemoryMeter
from speechmeter.meters.resident import HighWaterMark
from speechmeter.transducer import engines


@pytest.fixture
def fresh_choice() -> object:
    engines._compiled.cache_clear()
    yield None
    engines._compiled.cache_clear()


@NEEDS_NUMBA
def test_numba_computes_where_it_can() -> None:
    plain = torch.zeros(2, 3, 4, 5)
    assert engines.engine_for(plain).name == "numba"
    assert engines.engine_for(plain.double()).name == "numba"
    assert engines.engine_for(plain.half()).name == "torch"
    assert engines.engine_for(plain.transpose(0, 1)).name == "torch"
    assert engines.engine_for(plain.to("meta")).name == "torch"


@NEEDS_NUMBA
def test_only_one_engine_computes_where_that_is_asked() -> None:
    plain = torch.zeros(2, 3, 4, 5)
    with engines.only(engines.TORCH):
        assert engines.engine_for(plain).name == "torch"
    assert engines.engine_for(plain).name == "numba"


def test_torch_computes_without_numba(monkeypatch: pytest.MonkeyPatch, fresh_choice: object) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    for name in ("kernels", "compiled"):
        monkeypatch.delitem(sys.modules, f"speechmeter.transducer.{name}", raising=False)
        monkeypatch.delattr(f"speechmeter.transducer.{name}", raising=False)
    assert engines.engine_for(torch.zeros(2, 3, 4, 5)).name == "torch"


@pytest.mark.skipif(not HighWaterMark().usable(), reason="the kernel's mark of the resident size cannot be reset here")
@pytest.mark.parametrize("engine", ENGINES)
def test_extra_memory_is_under_a_quarter_of_the_logits(engine: str) -> None:
    environ = {**os.environ, **MemoryMeter.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    script = [sys.executable, "-c", "import sys, transducer_memory; transducer_memory.tell(sys.argv[1])", engine]
    done = subprocess.run(script, env=environ, capture_output=True, text=True, check=True)
    logits_bytes, step_bytes, log_softmax_bytes = map(int, done.stdout.split())
    assert step_bytes - logits_bytes < logits_bytes / 4
    assert log_softmax_bytes > 1.25 * logits_bytes  # so that the probe is known to see


@NEEDS_NUMBA
def test_written_out_exponential_is_right_to_the_last_places() -> None:
    from speechmeter.transducer import compiled

    x = -np.logspace(-8, np.log10(86.9), 20_000).astype(np.float32)
    x = np.concatenate([x, np.zeros(1, np.float32)])
    out = np.empty_like(x)
    compiled._exp_row(x, np.float32(0), out)
    exact = np.exp(x.astype(np.float64))
    assert np.max(np.abs(out - exact) / np.spacing(exact.astype(np.float32))) <= 2


@NEEDS_NUMBA
def test_written_out_exponential_at_its_ends() -> None:
    from speechmeter.transducer import compiled

    x = np.array([-87.5, -1e30, -np.inf, np.nan, 0.0], np.float32)
    out = np.empty_like(x)
    compiled._exp_row(x, np.float32(0), out)
    assert out[[0, 1, 2, 4]].tolist() == [0, 0, 0, 1]
    assert np.isnan(out[3])


@NEEDS_NUMBA
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_largest_of_a_row_is_that_of_its_numbers(dtype: type) -> None:
    from speechmeter.transducer import compiled

    numbers = np.random.default_rng(0).normal(size=(200, 37)).astype(dtype)
    rows = [*numbers, *(-np.abs(numbers)), *(numbers * 1e30), np.array([-np.inf, -1, -2], dtype), np.zeros(1, dtype)]
    assert [compiled._largest(row) for row in rows] == [row.max() for row in rows]
