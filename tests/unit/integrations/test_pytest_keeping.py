"""What is left of a session: one run of its parts, and a baseline that loses nothing."""

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
    assert len(RunDir(tmp_path / "perf/baseline").environments()) == 2
    assert [path.name for path in (tmp_path / "perf").iterdir()] == ["baseline"]


def test_each_machine_has_its_own_part_of_a_baseline(tmp_path):
    write_run(tmp_path / "desk", 1, [1.0], case("a"))
    write_run(tmp_path / "server", 1, [2.0], case("a"), host="server")
    for name in ("desk", "server"):
        update_baseline(tmp_path / "baseline", tmp_path / name)
    assert held(tmp_path / "baseline") == {"a": [1.0, 2.0]}


def test_a_case_that_failed_replaces_nothing(tmp_path):
    write_run(tmp_path / "good", 1, [1.0], case("a"))
    write_run(tmp_path / "bad", 2, [9.0], case("a"), status="oom")
    update_baseline(tmp_path / "baseline", tmp_path / "good")
    assert update_baseline(tmp_path / "baseline", tmp_path / "bad") == 0
    assert held(tmp_path / "baseline") == {"a": [1.0]}
