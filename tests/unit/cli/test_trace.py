"""`speechmeter trace diff` on traces made by hand: folders of several steps, and which changes are listed."""

import json

import pytest

from speechmeter.core.traces import SUFFIX, Trace, write_trace


def op(name, start, length, cat="cpu_op"):
    return {"ph": "X", "name": name, "cat": cat, "pid": 1, "tid": 1, "ts": start, "dur": length, "args": {}}


def steps(count, *more):
    """Traces of one step each, as a profiled function leaves them."""
    step = [op("ProfilerStep#0", 0, 1000, cat="user_annotation"), op("aten::mm", 10, 200), *more]
    return [Trace(events=step) for _ in range(count)]


@pytest.fixture
def folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mine = [op("mine", 300, 100, cat="user_annotation"), op("aten::mm", 310, 50), op("aten::erf", 700, 100)]
    made = {"a": steps(2, op("aten::erf", 700, 10)), "b": steps(3, *mine)}
    for name, traces in made.items():
        for number, trace in enumerate(traces):
            write_trace(tmp_path / name / "trace" / f"step-{number}{SUFFIX}", trace)
    return tmp_path


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ((), ["mine", "aten::mm", "aten::erf"]),
        (("--changed", "only"), ["mine"]),
        (("--changed", "count"), ["mine", "aten::mm"]),
        (("--changed", "time"), ["aten::erf"]),
    ],
)
def test_folders_of_steps_are_compared_by_step(command, folders, asked, names):
    done = command("trace", "diff", "a", "b", "--format", "json", *asked)
    (table,) = json.loads(done.out)
    assert [row["labels"][0] for row in table["rows"]] == names
    assert table["notes"][0].startswith(
        "values are for one step: means over 2 steps of A and 3 steps of B. A step took 1.00 ms in A and 1.00 ms in B."
    )
    calls = {row["labels"][0]: [cell["text"] for cell in row["cells"]][:2] for row in table["rows"]}
    assert calls.items() <= {"mine": ["0", "1"], "aten::mm": ["1", "2"], "aten::erf": ["1", "1"]}.items()


def test_nothing_of_a_kind_is_said_in_words(command, folders):
    assert command("trace", "diff", "a", "a", "--changed", "count").out == "nothing changed in number\n"


def test_an_unknown_change_and_folders_of_different_things_are_refused(command, folders):
    wrong = command("trace", "diff", "a", "b", "--changed", "counts")
    assert (wrong.code, wrong.err.strip().endswith("did you mean 'count'?")) == (2, True)
    mixed = command("trace", "diff", ".", "b")
    assert mixed.code == 2
    assert "there are traces in 2 folders below this one; choose one: a/trace, b/trace" in mixed.err
