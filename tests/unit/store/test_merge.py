"""Runs put together: machines stay apart, duplicates are kept once, contradictions leave nothing behind."""

import os
import subprocess
import sys

import pytest
from conftest import make_case, make_record

from speechmeter.core import metrics
from speechmeter.core.errors import RunDirError, StoreError
from speechmeter.core.hosts import as_stored, hosts_apart
from speechmeter.core.types import Environment, Measurement
from speechmeter.store.artifacts import artifact, artifacts_of
from speechmeter.store.merge import merge
from speechmeter.store.run_dir import RunDir, RunWriter


def measured(host, latency_s, round=0, sequence=0, *, environment=None, **axes):
    place = environment or Environment(facts={"host": host, "cpu": host.upper()})
    latency = Measurement.of(metrics.LATENCY, [latency_s])
    return place, make_record(
        make_case(**axes), latency, round=round, sequence=sequence, host=host, environment=place.fingerprint
    )


def write(path, *pairs, plan="models: [log-mel]\n"):
    with RunWriter(path) as store:
        store.begin(plan)
        for environment, record in pairs:
            store.append(record, environment)
    return path


def two_machines(tmp_path):
    a = write(tmp_path / "a", measured("pi", 1.0), measured("pi", 1.1, 1, 1))
    b = write(tmp_path / "b", measured("orin", 0.5), measured("orin", 0.6, 1, 1))
    return a, b


def test_every_record_and_environment_of_both_machines_is_there(tmp_path):
    a, b = two_machines(tmp_path)
    merge([a, b], tmp_path / "ab")
    made = RunDir.existing(tmp_path / "ab")
    found = {(r.host, r.round): r.find("latency.v1").values for r in made.records()}
    assert found == {("pi", 0): (1.0,), ("pi", 1): (1.1,), ("orin", 0): (0.5,), ("orin", 1): (0.6,)}
    assert made.environments() == {**RunDir(a).environments(), **RunDir(b).environments()}
    assert made.plan_path.read_text() == "models: [log-mel]\n"


def test_rounds_of_two_runs_never_count_as_neighbours(tmp_path):
    a = write(tmp_path / "a", measured("pi", 1.0, sequence=7))
    b = write(tmp_path / "b", measured("pi", 1.0, sequence=7, seconds=2.0))
    first, second = merge([a, b], tmp_path / "ab").gathered.records
    assert (first.lane, second.lane) == ("", "#2")
    assert second.sequence > first.sequence  # in time, they are still one after the other
    third = write(tmp_path / "c", measured("pi", 1.0, sequence=7, seconds=3.0))
    assert [r.lane for r in merge([tmp_path / "ab", third], tmp_path / "abc").gathered.records] == ["", "#2", "#3"]


def test_what_stands_in_several_runs_is_kept_once(tmp_path):
    a, b = two_machines(tmp_path)
    merge([a, b], tmp_path / "ab")
    again = merge([tmp_path / "ab", a, b, a], tmp_path / "again")
    assert again.gathered.duplicates == 6
    assert RunDir(tmp_path / "again").records() == RunDir(tmp_path / "ab").records()


def test_contradicting_records_are_refused_by_name_and_nothing_is_written(tmp_path):
    a = write(tmp_path / "a", measured("pi", 1.0))
    b = write(tmp_path / "b", measured("pi", 2.0))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(RunDirError) as refusal:
        merge([a, b], tmp_path / "ab")
    assert all(word in str(refusal.value) for word in (str(a), str(b), make_case().id, "round 0", "pi"))
    assert sorted(tmp_path.rglob("*")) == before


def test_two_boards_of_one_name_are_told_apart_by_their_runs(tmp_path):
    boards = [Environment(facts={"host": "raspberrypi", "memory_bytes": n}) for n in (4, 8)]
    a = write(tmp_path / "a", measured("raspberrypi", 1.0, environment=boards[0]))
    b = write(tmp_path / "b", measured("raspberrypi", 2.0, environment=boards[1]))
    made = merge([a, b], tmp_path / "ab")
    assert made.gathered.renamed == [("raspberrypi", "raspberrypi (b)")]
    assert {r.host: r.find("latency.v1").values for r in RunDir(tmp_path / "ab").records()} == {
        "raspberrypi": (1.0,),
        "raspberrypi (b)": (2.0,),
    }
    assert merge([tmp_path / "ab", b], tmp_path / "again").gathered.duplicates == 1


def test_rounds_of_one_case_in_two_environments_never_become_one_figure(tmp_path):
    states = [Environment(facts={"host": "pi", "packages": {"torch": version}}) for version in ("2.6", "2.7")]
    a = write(tmp_path / "a", measured("pi", 1.0, 0, environment=states[0]))
    b = write(tmp_path / "b", measured("pi", 2.0, 1, environment=states[1]))
    made = merge([a, b], tmp_path / "ab")
    assert [(r.host, r.round) for r in RunDir(tmp_path / "ab").records()] == [("pi", 0), ("pi (b)", 1)]
    assert made.gathered.renamed == [("pi", "pi (b)")]


def test_other_cases_of_one_machine_keep_its_name_whatever_they_load(tmp_path):
    states = [Environment(facts={"host": "pi", "packages": packages}) for packages in ({}, {"torch": "2.6"})]
    a = write(tmp_path / "a", measured("pi", 1.0, environment=states[0]))
    b = write(tmp_path / "b", measured("pi", 2.0, environment=states[1], seconds=2.0))
    assert merge([a, b], tmp_path / "ab").gathered.renamed == []


def test_later_rounds_of_a_renamed_machine_join_it(tmp_path):
    boards = [Environment(facts={"host": "raspberrypi", "memory_bytes": n}) for n in (4, 8)]
    a = write(tmp_path / "a", measured("raspberrypi", 1.0, environment=boards[0]))
    b = write(tmp_path / "b", measured("raspberrypi", 2.0, environment=boards[1]))
    merge([a, b], tmp_path / "ab")
    write(b, measured("raspberrypi", 2.1, 1, 1, environment=boards[1]))
    again = merge([tmp_path / "ab", b], tmp_path / "again").gathered.records
    assert [(r.host, r.round) for r in again] == [("raspberrypi", 0), ("raspberrypi (b)", 0), ("raspberrypi (b)", 1)]


def test_a_failure_without_an_environment_is_not_taken_for_another_machine(tmp_path):
    a = write(tmp_path / "a", (None, make_record(make_case(), status="oom", host="pi")))
    b = write(tmp_path / "b", measured("pi", 1.0))
    with pytest.raises(RunDirError, match="different content"):
        merge([a, b], tmp_path / "ab")


def test_an_environment_that_was_changed_by_hand_is_refused(tmp_path):
    a, b = two_machines(tmp_path)
    text = (a / "environments.jsonl").read_text()
    (b / "environments.jsonl").write_text(text.replace('"PI"', '"ORIN"'))
    with pytest.raises(StoreError, match="changed by hand"):
        merge([a, b], tmp_path / "ab")


def test_a_place_that_is_taken_is_refused(tmp_path):
    a, b = two_machines(tmp_path)
    with pytest.raises(RunDirError, match="exists already"):
        merge([a, b], b)


def test_different_plans_are_kept_beside_each_other(tmp_path):
    a = write(tmp_path / "a", measured("pi", 1.0), plan="models: [x]\n")
    b = write(tmp_path / "b", measured("orin", 1.0), plan="models: [y]\n")
    merge([a, b], tmp_path / "ab")
    assert not RunDir(tmp_path / "ab").plan_path.exists()
    plans = (tmp_path / "ab/artifacts/plans").iterdir()
    assert sorted(path.read_text() for path in plans) == ["models: [x]\n", "models: [y]\n"]


def machine(path, text=None):
    """A run of one case on the host of that name, which leaves a file with this text, if any."""
    run = write(path, measured(path.name, 1.0))
    if text is not None:
        leave(run / "artifacts" / make_case().id, text)
    return run


def leave(folder, text):
    folder.mkdir()
    (folder / "text.tsv").write_text(text)


def texts(run):
    files = {r.host: artifact(RunDir(run).artifacts_path, r, "text.tsv") for r in RunDir(run).records()}
    return {host: file and file.read_text() for host, file in files.items()}


def test_artifacts_go_with_their_host_when_merged_runs_are_merged(tmp_path):
    a, b, c = (machine(tmp_path / name, f"of {name}") for name in "abc")
    merge([a, b], tmp_path / "ab")
    for number, runs in enumerate(([c, tmp_path / "ab"], [tmp_path / "ab", c], [tmp_path / "ab", b, a, c])):
        made = merge(runs, tmp_path / f"all-{number}").path
        assert texts(made) == {"a": "of a", "b": "of b", "c": "of c"}
        assert len(list((made / "artifacts").iterdir())) == 3


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_a_host_that_left_nothing_is_not_given_what_another_left(tmp_path, order):
    runs = {"a": machine(tmp_path / "a", "of a"), "b": machine(tmp_path / "b")}
    merge([runs[name] for name in order], tmp_path / "ab")
    assert texts(tmp_path / "ab") == {"a": "of a", "b": None}


def test_merged_runs_of_earlier_versions_are_read_and_merged(tmp_path):
    a, b, c = machine(tmp_path / "a"), machine(tmp_path / "b"), machine(tmp_path / "c", "of c")
    merge([a, b], tmp_path / "ab")
    leave(tmp_path / "ab/artifacts" / make_case().id, "of a")
    leave(tmp_path / "ab/artifacts" / f"{make_case().id}-b", "of b")
    assert texts(tmp_path / "ab") == {"a": "of a", "b": "of b"}
    merge([c, tmp_path / "ab"], tmp_path / "all")
    assert texts(tmp_path / "all") == {"a": "of a", "b": "of b", "c": "of c"}


def test_other_artifacts_of_one_host_and_case_are_kept_beside_the_first(tmp_path):
    first, second = machine(tmp_path / "a", "one"), write(tmp_path / "later", measured("a", 1.1, 1, 1))
    leave(second / "artifacts" / make_case().id, "two")
    merge([first, second], tmp_path / "both")
    found = {file.parent.name: file.read_text() for file in (tmp_path / "both/artifacts").rglob("*.tsv")}
    assert found == {make_case().id: "one", f"{make_case().id}-later": "two"}


def test_artifacts_of_one_case_on_two_machines_stay_apart(tmp_path):
    a, b = two_machines(tmp_path)
    for run, text in ((a, "one"), (b, "two")):
        folder = run / "artifacts" / make_case().id
        folder.mkdir()
        (folder / "text.tsv").write_text(text)
    merge([a, b], tmp_path / "ab")
    made = RunDir(tmp_path / "ab")
    texts = {r.host: (artifacts_of(made.artifacts_path, r) / "text.tsv").read_text() for r in made.records()}
    assert texts == {"pi": "one", "orin": "two"}
    apart = {r.host: artifacts_of(made.artifacts_path, r) for r in hosts_apart(made.records())}
    assert apart == {r.host: artifacts_of(made.artifacts_path, r) for r in made.records()}


def test_links_among_artifacts_are_not_followed(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("not yours")
    a, b = two_machines(tmp_path)
    (a / "artifacts/file").symlink_to(secret)
    (a / "artifacts/folder").symlink_to(tmp_path)
    (a / "artifacts/inner").mkdir()
    (a / "artifacts/inner/link").symlink_to(secret)
    os.mkfifo(a / "artifacts/pipe")
    (b / "artifacts").rmdir()
    (b / "artifacts").symlink_to(tmp_path)
    made = merge([a, b], tmp_path / "ab")
    assert len(made.left_out) == 5
    assert not [path for path in (tmp_path / "ab/artifacts").rglob("*") if path.is_file() or path.is_symlink()]


def test_one_machine_is_read_as_it_was_written():
    records = [make_record(make_case(), round=n, host="pi") for n in range(2)]
    assert hosts_apart(records) == records


def test_cases_of_two_machines_have_ids_of_their_own_and_remember_the_first():
    records = [make_record(make_case(), host=host) for host in ("pi", "orin")]
    apart = hosts_apart(records)
    assert len({record.case.id for record in apart}) == 2
    assert {as_stored(record.case).id for record in apart} == {make_case().id}


def test_what_a_killed_merge_left_is_removed_by_the_next_one(tmp_path):
    a, b = two_machines(tmp_path)
    code = """
import os, sys
from pathlib import Path
from speechmeter.store import merge
merge._write_plans = lambda target, runs: os.kill(os.getpid(), 9)
merge.merge([Path("a"), Path("b")], Path("ab"))
"""
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False).returncode == -9
    assert len([path for path in tmp_path.iterdir() if path.name.startswith(".")]) == 1
    merge([a, b], tmp_path / "ab")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "ab", "b"]
