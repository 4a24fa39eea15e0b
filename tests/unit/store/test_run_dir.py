"""A run directory: what is written comes back, one writer at a time, and whether the run is complete."""

import json
import subprocess
import sys

import pytest
from conftest import make_case, make_record

from speechmeter.core import metrics
from speechmeter.core.errors import RunDirError, StoreError
from speechmeter.core.types import Environment, Measurement
from speechmeter.store import schema
from speechmeter.store.run_dir import PLANNED_FILE, Planned, RunDir, RunWriter, unfinished


def write(path, *records, environment=None):
    with RunWriter(path) as store:
        store.begin("models: [log-mel]\n")
        for record in records:
            store.append(record, environment)


def test_records_come_back_as_they_went(tmp_path):
    records = [make_record(make_case(seconds=float(n + 1)), sequence=n) for n in range(3)]
    write(tmp_path / "run", *records)
    assert RunDir.existing(tmp_path / "run").records() == records


def test_a_record_that_could_not_be_read_back_is_not_written(tmp_path):
    whole = make_record(make_case())
    broken = make_record(make_case(seconds=2.0), Measurement.of(metrics.LATENCY, []), sequence=1)
    with pytest.raises(StoreError, match="values is empty"):
        write(tmp_path, whole, broken, environment=Environment(facts={"cpu": "x"}))
    assert RunDir.existing(tmp_path).records() == [whole]


def test_a_torn_last_line_is_left_out_and_cut_before_appending(tmp_path):
    first, second = make_record(make_case(), sequence=0), make_record(make_case(seconds=2.0), sequence=1)
    write(tmp_path, first)
    whole = (tmp_path / "records.jsonl").read_bytes()
    with (tmp_path / "records.jsonl").open("ab") as file:
        file.write(json.dumps(second.to_json()).encode()[:50])
    assert RunDir.existing(tmp_path).records() == [first]
    write(tmp_path, second)
    assert (tmp_path / "records.jsonl").read_bytes().startswith(whole)
    assert RunDir.existing(tmp_path).records() == [first, second]


def test_of_a_repeated_round_the_last_counts(tmp_path):
    failed = make_record(make_case(), status="oom", sequence=0)
    repeated = make_record(make_case(), sequence=1)
    write(tmp_path, failed, repeated)
    assert RunDir.existing(tmp_path).records() == [repeated]


def test_an_environment_is_stored_once(tmp_path):
    environment = Environment(facts={"cpu": "x"})
    write(tmp_path, make_record(make_case()), make_record(make_case(), round=1), environment=environment)
    write(tmp_path, make_record(make_case(), round=2), environment=environment)
    assert len((tmp_path / "environments.jsonl").read_text().splitlines()) == 1
    assert environment.fingerprint in RunDir(tmp_path).environments()


def test_a_second_writer_is_refused(tmp_path):
    with RunWriter(tmp_path), pytest.raises(RunDirError, match="another run"), RunWriter(tmp_path):
        pass


def test_the_lock_ends_with_its_process(tmp_path):
    code = f"import os; from pathlib import Path; from speechmeter.store.run_dir import RunWriter; \
RunWriter(Path({str(tmp_path)!r})).__enter__(); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code], check=False)
    with RunWriter(tmp_path):
        pass


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ([], "there is no schema number"), (3, "there is no schema number"), ({}, "there is no schema number"),
        ({"schema": "x"}, "there is no schema number"), ({"schema": 1}, "'case' is missing"),
        ({"schema": 1, "case": 3}, "case is not a mapping"),
    ],
)  # fmt: skip
def test_what_is_no_record_is_refused(data, why):
    with pytest.raises(StoreError, match=why):
        schema.record_from_line(data)


def test_a_newer_schema_is_refused_with_its_number():
    with pytest.raises(StoreError, match="schema 99"):
        schema.record_from_line({**make_record(make_case()).to_json(), "schema": 99})


def test_old_schemas_are_upgraded_step_by_step():
    record = make_record(make_case(), reason="kept")
    old = {**record.to_json(), "schema": -1}
    old["why"] = old.pop("reason")
    upgrades = {
        -1: lambda data: {**{k: v for k, v in data.items() if k != "why"}, "because": data["why"]},
        0: lambda data: {**{k: v for k, v in data.items() if k != "because"}, "reason": data["because"]},
    }
    assert schema.record_from_line(old, upgrades=upgrades) == record


def test_clear_leaves_files_that_are_not_ours(tmp_path):
    write(tmp_path, make_record(make_case()))
    (tmp_path / "notes.txt").write_text("mine")
    with RunWriter(tmp_path) as store:
        store.clear()
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_table_is_replaced_by_the_next_of_its_name_and_goes_with_the_run(tmp_path):
    with RunWriter(tmp_path / "run") as store:
        store.begin("models: [log-mel]\n")
        store.write_table("rtf.md", "first")
        assert store.write_table("rtf.md", "second").read_text() == "second"
        store.clear()
    assert list((tmp_path / "run").iterdir()) == []


def test_a_table_is_not_written_through_a_link(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    with RunWriter(tmp_path / "run") as store:
        store.begin("models: [log-mel]\n")
        (tmp_path / "run" / "tables").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(RunDirError, match="link"):
            store.write_table("rtf.md", "text")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_folder_that_is_no_run(tmp_path):
    with pytest.raises(RunDirError, match="not a run directory"):
        RunDir.existing(tmp_path)
    with pytest.raises(RunDirError, match="no such directory"):
        RunDir.existing(tmp_path / "absent")


def rounds_of(**rounds):
    return [make_record(make_case(name), round=n) for name, count in rounds.items() for n in range(count)]


def plan_in(folder, *names, rounds=2):
    (folder / PLANNED_FILE).write_text(Planned(cases=tuple(make_case(name).id for name in names), rounds=rounds).text())


@pytest.mark.parametrize(
    ("rounds", "left"),
    [
        ({"a": 2, "b": 2, "c": 2}, ""),
        ({"a": 2, "b": 2}, "1 of 3 cases has no record"),
        ({"a": 2}, "2 of 3 cases have no record"),
        ({"a": 2, "b": 2, "c": 1}, "1 of 3 cases has fewer than 2 rounds"),
        ({"a": 2, "b": 1}, "1 of 3 cases has no record, 1 has fewer than 2 rounds"),
    ],
)
def test_what_is_missing_is_reported(tmp_path, rounds, left):
    plan_in(tmp_path, "a", "b", "c")
    assert unfinished(tmp_path, rounds_of(**rounds)) == left


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[" * 100_000,
        "[]",
        '{"cases": ["a"], "rounds": -1}',
        '{"cases": "a", "rounds": 1}',
        '{"cases": [1], "rounds": 1}',
        "\xff",
    ],
    ids=lambda text: text[:12],
)
def test_an_unreadable_file_concludes_nothing(tmp_path, text):
    (tmp_path / PLANNED_FILE).write_bytes(text.encode("latin-1"))
    assert RunDir(tmp_path).planned() is None
    assert unfinished(tmp_path, []) == ""


def test_a_run_of_an_older_version_is_not_called_unfinished(tmp_path):
    assert unfinished(tmp_path, []) == ""


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    plan_in(tmp_path / "elsewhere", "a")
    (tmp_path / PLANNED_FILE).symlink_to(tmp_path / "elsewhere" / PLANNED_FILE)
    assert RunDir(tmp_path).planned() is None
