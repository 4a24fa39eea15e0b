"""Real faults of a CUDA device: out of memory, and errors after which the process cannot use it any more."""

import json

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device on this machine", allow_module_level=True)

MODELS = '''
import torch


def fine():
    return lambda samples: samples.sum()


def greedy():
    return lambda samples: torch.empty(2**45, dtype=torch.uint8, device=samples.device)


def asserts():
    """An index beyond the end: the kernel's own check fails, and the context of the process is lost."""
    def call(samples):
        table = torch.zeros(4, device=samples.device)
        found = table[torch.full((8,), 1 << 20, device=samples.device)]
        torch.cuda.synchronize()
        return found
    return call


def asserts_later():
    """The same without waiting for it: the next synchronisation meets the error."""
    def call(samples):
        return torch.zeros(4, device=samples.device)[torch.full((8,), 1 << 20, device=samples.device)]
    return call
'''


@pytest.fixture
def run(cli, workshop):
    (workshop / "cuda_faults.py").write_text(MODELS)

    def call(*names, launcher="subprocess"):  # inline loses the GPU of its process: not that of the tests
        models = [word for name in names for word in ("--model", f"python:cuda_faults.py:{name}")]
        done = cli("run", *models, "--device", "cuda", "--seconds", "1", "--quick", "--meters", "latency", "-o", "run",
                   "--launcher", launcher, fresh=launcher == "inline")  # fmt: skip
        lines = [json.loads(line) for line in (workshop / "run/records.jsonl").read_text().splitlines()]
        return done, {line["case"]["subject"]["name"].partition(":")[2]: line for line in lines}

    return call


@pytest.mark.parametrize("name", ["asserts", "asserts_later"])
def test_a_case_that_loses_the_gpu_does_not_take_the_next_one_with_it(name, run):
    done, records = run(name, "fine")
    assert done.returncode == 0, done.stderr
    assert records[name]["status"] == "crashed", records[name]["reason"]
    assert "device-side assert" in records[name]["reason"]
    assert records["fine"]["status"] == "ok", records["fine"]["reason"]


def test_out_of_memory_keeps_the_words_of_the_library_and_the_next_case(run):
    done, records = run("greedy", "fine")
    assert done.returncode == 0, done.stderr
    assert records["greedy"]["status"] == "oom"
    assert "out of memory" in records["greedy"]["reason"]
    assert records["fine"]["status"] == "ok"


def test_an_inline_run_ends_after_the_case_that_lost_the_gpu(run):
    done, records = run("asserts", "fine", launcher="inline")
    assert done.returncode == 1
    assert "--launcher subprocess" in done.stderr
    assert "Traceback" not in done.stderr
    assert [record["status"] for record in records.values()] == ["crashed"]
