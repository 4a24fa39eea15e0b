"""What is left of a session: one run of its parts, and a baseline that loses nothing."""

from pathlib import Path

import pytest
from conftest import make_case
from run_histories import write_run

from speechmeter.core.errors import RunDirError
from speechmeter.core.types import Spec
from speechmeter.integrations.pytest.keeping import put_together, update_baseline
from speechmeter.store.run_dir import RunDir


def case(name, **changes):
    return make_case(subject=Spec(plugin="python", name=name, source="a.py:b"), **changes)


def held(path):
    found = {}
    for record in RunDir.existing(path).records():
        found.setdefault(record.case.subject.name, []).append(record.measurements[0].values[0])
    return found


def files_of(folder):
    return sorted(path.name for path in folder.iterdir())


def test_parts_become_one_run_and_go(tmp_path):
    write_run(tmp_path / "parts/gw0-1", 1, [1.0, 1.1], case("a"))
    write_run(tmp_path / "parts/gw1-1", 1, [2.0, 2.1], case("b"))
    put_together(tmp_path / "parts", tmp_path / "run")
    assert held(tmp_path / "run") == {"a": [1.0, 1.1], "b": [2.0, 2.1]}
    assert not (tmp_path / "parts").exists()


def test_parts_that_contradict_each_other_are_kept(tmp_path):
    write_run(tmp_path / "parts/gw0-1", 1, [1.0], case("a"))
    write_run(tmp_path / "parts/gw1-1", 1, [2.0], case("a"))
    with pytest.raises(RunDirError, match="both hold round 0"):
        put_together(tmp_path / "parts", tmp_path / "run")
    assert len(list((tmp_path / "parts").iterdir())) == 2


def test_a_baseline_keeps_what_was_not_measured_and_replaces_all_rounds_of_what_was(tmp_path):
    write_run(tmp_path / "first", 1, [1.0, 1.1, 1.2], case("a"))
    write_run(tmp_path / "other", 2, [5.0], case("b"))
    write_run(tmp_path / "second", 3, [3.0], case("a", seconds=2.0))
    for name in ("first", "other", "second"):
        assert update_baseline(tmp_path / "perf/baseline", tmp_path / name) == 1
    assert held(tmp_path / "perf/baseline") == {"b": [5.0], "a": [3.0]}
    assert files_of(tmp_path / "perf") == ["baseline"]


def test_environments_that_no_record_uses_go_with_the_next_update(tmp_path):
    for day in (1, 2, 3, 4):
        write_run(tmp_path / f"run-{day}", day, [1.0], case("a"))
        update_baseline(tmp_path / "baseline", tmp_path / f"run-{day}")
    assert [data["facts"]["git"] for data in RunDir(tmp_path / "baseline").environments().values()] == [
        "c0ffee03",
        "c0ffee04",
    ]


def test_an_update_leaves_all_other_files_of_a_baseline_alone(tmp_path):
    baseline = tmp_path / "baseline"
    write_run(baseline, 1, [1.0], case("a"))
    (baseline / "plan.yaml").write_text("name: mine\n")
    (baseline / "artifacts/trace.json").write_text("{}")
    (baseline / "README.md").write_text("why it is so slow")
    before = files_of(baseline)
    write_run(tmp_path / "run", 2, [2.0], case("a"))
    update_baseline(baseline, tmp_path / "run")
    assert held(baseline) == {"a": [2.0]}
    assert files_of(baseline) == before
    assert (baseline / "plan.yaml").read_text() == "name: mine\n"


@pytest.mark.parametrize("failing", ["environments.jsonl", "records.jsonl"])
def test_a_baseline_that_cannot_be_replaced_stays_whole(tmp_path, monkeypatch, failing):
    baseline = tmp_path / "baseline"
    write_run(baseline, 1, [1.0], case("a"))
    write_run(tmp_path / "run", 2, [2.0], case("a"))
    before, place = files_of(baseline), Path.replace

    def replace(path, target):
        if path.name == failing:
            raise OSError(28, "No space left on device")
        return place(path, target)

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(RunDirError, match="No space left on device"):
        update_baseline(baseline, tmp_path / "run")
    assert held(baseline) == {"a": [1.0]}
    assert {record.environment for record in RunDir(baseline).records()} <= set(RunDir(baseline).environments())
    assert files_of(baseline) == before


def test_a_folder_that_holds_something_else_is_no_baseline(tmp_path):
    write_run(tmp_path / "run", 1, [1.0], case("a"))
    (tmp_path / "home").mkdir()
    assert update_baseline(tmp_path / "home", tmp_path / "run") == 1
    (tmp_path / "work").mkdir()
    (tmp_path / "work/thesis.tex").touch()
    with pytest.raises(RunDirError, match="not a run directory"):
        update_baseline(tmp_path / "work", tmp_path / "run")


def test_each_machine_has_its_own_part_of_a_baseline(tmp_path):
    write_run(tmp_path / "desk", 1, [1.0], case("a"))
    write_run(tmp_path / "server", 1, [2.0], case("a"), host="server")
    for name in ("desk", "server"):
        update_baseline(tmp_path / "baseline", tmp_path / name)
    assert held(tmp_path / "baseline") == {"a": [1.0, 2.0]}


@pytest.mark.parametrize("status", ["oom", "unavailable"])
def test_a_case_that_was_not_measured_replaces_nothing(tmp_path, status):
    write_run(tmp_path / "good", 1, [1.0], case("a"))
    write_run(tmp_path / "bad", 2, [9.0], case("a"), status=status)
    update_baseline(tmp_path / "baseline", tmp_path / "good")
    assert update_baseline(tmp_path / "baseline", tmp_path / "bad") == 0
    assert held(tmp_path / "baseline") == {"a": [1.0]}


def test_cells_that_the_plan_leaves_out_do_not_keep_the_others_from_a_baseline(tmp_path):
    write_run(tmp_path / "run", 1, [1.0], case("a"))
    write_run(tmp_path / "out", 1, [9.0], case("a", seconds=99.0), status="skipped")
    with (tmp_path / "run/records.jsonl").open("a") as records:
        records.write((tmp_path / "out/records.jsonl").read_text())
    assert update_baseline(tmp_path / "baseline", tmp_path / "run") == 1
    assert held(tmp_path / "baseline") == {"a": [1.0]}
