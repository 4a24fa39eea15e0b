"""`trace: true` from the command line, and a planted matmul that `trace diff` finds."""

import json

import pytest

pytest.importorskip("torch", reason="traces are torch's")
from trace_rules import breaches

from speechmeter.core.memory_timeline import read_timeline
from speechmeter.core.traces import find_trace, read_trace

MODEL = """\
import torch


class Net(torch.nn.Module):
    def __init__(self, extra):
        super().__init__()
        self.body, self.head = torch.nn.Linear(160, 16), torch.nn.Linear(16, 4)
        self.extra = torch.ones(16, 16) if extra else None

    def forward(self, x):
        hidden = self.body(x[:, :160])
        if self.extra is not None:
            hidden = torch.matmul(hidden, self.extra)
        return self.head(hidden)


def plain():
    return Net(False)


def planted():
    return Net(True)
"""


@pytest.fixture
def runs(cli, workshop):
    (workshop / "net.py").write_text(MODEL)
    for name, meters in {"plain": "latency,operators,split,timeline", "planted": "trace"}.items():
        done = cli("run", "--model", f"python:net.py:{name}", "--seconds", "1", "--meters", meters,
                   "--set", "trace=true", "--rounds", "1", "--set", "samples=2", "--set", "min_samples=1",
                   "--set", "warmup=0", "-o", name)  # fmt: skip
        assert done.returncode == 0, done.stderr
    return workshop


def test_a_run_keeps_its_trace_and_two_of_them_are_compared(cli, runs):
    (case,) = [path for path in (runs / "plain" / "artifacts").iterdir() if path.is_dir()]
    assert {str(path.relative_to(case)) for path in case.rglob("*") if path.is_file()} == {
        "memory.json", "operators.txt", "ranges.txt", "operators-by-module.txt", "operators-by-stack.txt",
        "trace/net-plain.pt.trace.json.gz", "trace/stacks.txt",
    }  # fmt: skip
    trace = read_trace(find_trace(runs / "plain"))
    assert breaches(trace.events) == []
    assert {"Net", "Net.body", "Net.head"} <= {event["name"] for event in trace.events}
    assert read_timeline(case / "memory.json").growth_bytes >= 16 * 4
    shown = cli("show", "plain", "--metric", "trace")
    assert f"artifacts/{case.name}/trace/net-plain.pt.trace.json.gz" in shown.stdout.replace("\n", "")
    assert "Net.body" in cli("show", "plain", "--metric", "operators-by-module").stdout
    split = cli("show", "plain", "--metric", "rtf", "--split", "--format", "csv").stdout
    assert {"1 wall", "1 CPU"} <= {line.split(",")[2] for line in split.splitlines()[1:]}

    found = cli("trace", "diff", "plain", "planted", "--format", "json")
    rows = {row["labels"][0]: row for table in json.loads(found.stdout) for row in table["rows"]}
    assert rows["aten::mm"]["labels"][1:] == ["operator", "only in B", "Net +1"]
    assert [cell["text"] for cell in rows["aten::mm"]["cells"]][:2] == ["0", "1"]
    assert "aten::addmm" not in {name for name, row in rows.items() if row["labels"][3]}

    done = cli("trace", "merge", "plain", "planted", "-o", "both.json.gz")
    assert done.returncode == 0, done.stderr
    both = read_trace(runs / "both.json.gz")
    assert breaches(both.events) == []
    assert sum(event["name"] == "Net.body" for event in both.events) == 2
    check_latency_comes_from_another_process(runs)


def check_latency_comes_from_another_process(runs):
    record = json.loads((runs / "plain" / "records.jsonl").read_text().splitlines()[0])
    phases = {m["scope"]: m["notes"]["phases"] for m in record["measurements"] if m["metric"] == "phase.v1"}
    assert "latency" in phases["process:main"]
    assert {"trace", "timeline"} <= set(phases["process:profiled"])
    assert "latency" not in phases["process:profiled"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("diff", "nowhere.json", "fakes.py"), "the trace cannot be read"),
        (("diff", "fakes.py", "fakes.py"), "this is not a trace"),
        (("diff", ".", "fakes.py"), "no trace in this folder"),
        (("merge", "fakes.py", "-o", "a.json.gz"), "nothing to merge"),
        (("merge", "fakes.py", "fakes.py", "-o", "a.json"), ".json.gz"),
        (("merge", "fakes.py", "fakes.py", "-o", "fakes.py"), "already exists"),
    ],
)
def test_bad_input_is_one_line(cli, args, said):
    done = cli("trace", *args)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
