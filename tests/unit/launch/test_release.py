"""Measuring in this process: what one case held is gone before the next."""

import sys
import weakref
from types import SimpleNamespace

import pytest
from conftest import make_case

from speechmeter.core import plugins
from speechmeter.core.outputs import Keep
from speechmeter.core.protocols import Prepared
from speechmeter.core.types import Stage
from speechmeter.launch.executors import InlineExecutor, release


class Held:
    """Something large that holds itself, as modules and their hooks do."""

    def __init__(self):
        self.me = self


@pytest.mark.parametrize("status", ["ok", "oom"])
def test_a_case_measured_inline_leaves_nothing_alive(monkeypatch, status):
    seen = []

    class Subject:
        def prepare(self, case, device):
            held = Held()
            seen.append(weakref.ref(held))

            def call(batch):
                if status == "oom":
                    raise MemoryError("out of memory")
                return id(held)

            return Prepared(stages=(Stage(name="model", fn=call),))

    monkeypatch.setattr(plugins, "subject", lambda name: Subject())
    assert InlineExecutor(Keep()).measure(make_case(), lambda phase: None).status == status
    assert seen[0]() is None


def test_cached_memory_goes_back_to_the_device_where_there_is_one(monkeypatch):
    emptied = []
    cuda = SimpleNamespace(
        is_available=lambda: True, is_initialized=lambda: True, empty_cache=lambda: emptied.append(1)
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    release()
    assert emptied == [1]
    cuda.is_initialized = lambda: False
    release()
    assert emptied == [1]


def test_a_device_that_was_broken_takes_no_outcome_with_it(monkeypatch):
    def broken():
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    cuda = SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True, empty_cache=broken)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    release()


def test_an_executor_without_torch_imports_none(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    release()
    assert "torch" not in sys.modules
