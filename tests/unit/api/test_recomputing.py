"""Live metrics made anew from stored exchanges: what changed is said, what others measured stays as it is."""

import json

import pytest

from speechmeter.api.recomputing import recompute
from speechmeter.api.runs import run_study
from speechmeter.api.starting import Options
from speechmeter.core.errors import InputError, StoreError
from speechmeter.plan.study import study_from_python
from speechmeter.report.text import formatted

KNOWN = {"name": "known", "load": "known:live", "clock": "virtual", "final_s": 0.25}
PLAN = {
    "models": [KNOWN],
    "audio": "sample",
    "seconds": 3,
    "pace": "realtime",
    "silence": "1s",
    "turns": 2,
    "rounds": 2,
}


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "live"
    run_study(study_from_python(PLAN), Options(output=path, launcher="inline"))
    return path


@pytest.fixture
def run(original, tmp_path):
    from shutil import copytree

    return copytree(original, tmp_path / "live")


def lines(run):
    return (run / "records.jsonl").read_bytes().splitlines(keepends=True)


def edited(run, number, change):
    """The run with a stored line changed, as an earlier version may have written it."""
    found = lines(run)
    data = json.loads(found[number])
    change(data["measurements"])
    found[number] = json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    (run / "records.jsonl").write_bytes(b"".join(found))


def exchanges(run):
    return sorted(run.rglob("exchanges-*.jsonl.gz"))


def test_the_same_definitions_change_nothing_and_nothing_is_written(run):
    before, written = lines(run), (run / "records.jsonl").stat().st_mtime_ns
    found = recompute(run)
    assert (found.rounds, found.cases, found.changes) == (2, 1, ())
    assert lines(run) == before
    assert (run / "records.jsonl").stat().st_mtime_ns == written


def test_a_figure_of_an_older_definition_is_replaced_and_the_change_is_said(run):
    before = lines(run)

    def older(measurements):
        for one in measurements:
            if one["metric"] == "finalize_delay.v1":
                one["metric"], one["values"] = "finalize_delay.v0", [0.5, 0.5]
            elif one["metric"] == "latency_load.v1":
                one["values"] = [123.0]  # of another meter: it cannot be made from exchanges

    edited(run, 0, older)
    (change,) = recompute(run).changes
    assert (change.metric.id, change.before_id, change.rounds) == ("finalize_delay.v1", "finalize_delay.v0", 1)
    assert change.before.value == pytest.approx(0.5)
    assert change.after.value == pytest.approx(0.25)
    first, second = map(json.loads, lines(run))
    assert second == json.loads(before[1])
    own = {one["metric"]: one for one in first["measurements"]}
    stored = {one["metric"]: one for one in json.loads(before[0])["measurements"]}
    assert own.pop("latency_load.v1")["values"] == [123.0]
    stored.pop("latency_load.v1")
    assert own == stored
    assert recompute(run).changes == ()


def test_the_table_names_case_metric_definition_and_both_figures(run):
    edited(run, 0, lambda measurements: measurements.pop(1))
    text = formatted([recompute(run).table()], "csv")
    assert "live_completeness" in text


def test_other_lines_are_kept_byte_by_byte(run):
    torn = b'{"id": "half a li'
    own = lines(run)
    (run / "records.jsonl").write_bytes(b"not a record\n" + b"".join(own) + torn)
    edited_line = 1
    found = lines(run)
    data = json.loads(found[edited_line])
    data["measurements"] = [one for one in data["measurements"] if one["metric"] != "final_delay.v1"]
    found[edited_line] = json.dumps(data).encode() + b"\n"
    (run / "records.jsonl").write_bytes(b"".join(found))
    with pytest.warns(UserWarning, match="cannot be read"):
        assert [change.metric.name for change in recompute(run).changes] == ["final_delay"]
    after = lines(run)
    assert (after[0], after[2], after[3]) == (b"not a record\n", own[1], torn)
    assert json.loads(after[1]) == json.loads(own[0])


@pytest.mark.parametrize("harm", ["cut", "missing", "other", "fewer", "more"])
def test_a_damaged_exchange_file_is_named_and_all_figures_stay(run, harm):
    edited(run, 0, lambda measurements: measurements.pop(1))
    before = lines(run)
    file = exchanges(run)[1]
    whole = file.read_bytes()
    members = whole.split(b"\x1f\x8b\x08")
    harmed = {
        "cut": whole[:-20], "other": b"something else", "missing": None,
        "fewer": b"\x1f\x8b\x08".join(members[:-1]), "more": b"\x1f\x8b\x08".join([*members, members[-1]]),
    }[harm]  # fmt: skip
    file.unlink() if harmed is None else file.write_bytes(harmed)
    with pytest.raises(StoreError, match=rf"{file.name}.*nothing was changed"):
        recompute(run)
    assert lines(run) == before


def test_how_many_conversations_there_are_and_should_be_is_said(run):
    file = exchanges(run)[1]
    whole = file.read_bytes()
    file.write_bytes(whole + b"\x1f\x8b\x08" + whole.split(b"\x1f\x8b\x08")[-1])
    with pytest.raises(StoreError, match="it holds 3 conversations, but the record says 2; nothing was changed"):
        recompute(run)


def test_a_run_without_live_cases_is_refused(tmp_path):
    plan = {"models": ["log-mel"], "seconds": 1, "rounds": 1, "meters": ["parameters"]}
    run_study(study_from_python(plan), Options(output=tmp_path / "run", launcher="inline"))
    with pytest.raises(InputError, match="no live case"):
        recompute(tmp_path / "run")
