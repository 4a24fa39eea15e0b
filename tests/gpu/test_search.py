"""A search on a CUDA device in this very process: out of memory is an answer, and frees what it held."""

import gc

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device on this machine", allow_module_level=True)

import speechmeter  # noqa: E402
from speechmeter.analysis.frontier import in_pieces  # noqa: E402
from speechmeter.engine.failures import classify  # noqa: E402
from speechmeter.report.frontier import titled_edges  # noqa: E402

GIB = 2
MODEL = """
import torch
from speechmeter import Prepared, Stage

def by_the_item():
    def call(batch):
        held = [torch.empty(64 * 2**20, dtype=torch.uint8, device="cuda") for _ in range(batch.items)]
        return len(held)

    return Prepared(stages=(Stage(name="model", fn=call),), sync=torch.cuda.synchronize)
"""


@pytest.fixture
def little_memory():
    """This process may have so many GiB of the device."""
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(GIB * 2**30 / torch.cuda.get_device_properties(0).total_memory)
    yield
    torch.cuda.set_per_process_memory_fraction(1.0)


def largest(records):
    ((_, edge),) = titled_edges(records)
    return edge.fits.value, edge.fails.value


def fits(count):
    try:
        held = [torch.empty(64 * 2**20, dtype=torch.uint8, device="cuda") for _ in range(count)]
    except torch.OutOfMemoryError:
        return False
    return len(held) == count


def all_that_fit():
    found = []
    for count in range(1, 40):
        torch.cuda.empty_cache()
        found += [count] if fits(count) else []
    torch.cuda.empty_cache()
    return found


def test_inline_finds_what_trying_all_finds_and_leaves_nothing_behind(little_memory, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hungry.py").write_text(MODEL)
    truth = all_that_fit()
    before = torch.cuda.memory_reserved()
    plan = {"models": "python:hungry.py:by_the_item", "seconds": 1, "device": "cuda", "find": "max-batch"}
    made = speechmeter.run(plan, output="run", launcher="inline")
    assert {record.status for record in made.records} == {"ok", "oom"}
    assert truth == list(range(1, len(truth) + 1))
    assert largest(made.records) == (len(truth), len(truth) + 1)
    assert len(made.records) < 14
    assert torch.cuda.memory_reserved() <= before


def test_a_loss_is_searched_inline(little_memory, tmp_path):
    plan = {"losses": "ours", "vocabulary": 4096, "device": "cuda", "find": "max-batch", "batch": 1,
            "find_most": 64, "meters": "memory"}  # fmt: skip
    made = speechmeter.run(plan, output=tmp_path / "run", launcher="inline")
    fitting, failing = largest(made.records)
    assert 1 <= fitting == failing - 1 < 64


def test_torch_says_how_much_lay_unused_in_pieces(little_memory):
    reasons = []
    for beside_mib in (300, 0):  # a part of the first piece stays in use, or nothing does
        whole = torch.empty(1200 * 2**20, dtype=torch.uint8, device="cuda")
        del whole
        beside = torch.empty(beside_mib * 2**20, dtype=torch.uint8, device="cuda")
        with pytest.raises(torch.OutOfMemoryError) as caught:
            torch.empty((1100 if beside_mib else 4000) * 2**20, dtype=torch.uint8, device="cuda")
        reasons.append(classify(caught.value)[1])
        del beside, caught
        torch.cuda.empty_cache()
    enough, too_much = reasons
    assert in_pieces(enough).unused_gib == pytest.approx(900 / 1024, abs=0.2), enough
    assert in_pieces(enough).whole_gib == pytest.approx(GIB, abs=0.01)
    assert in_pieces(too_much) is None, too_much
