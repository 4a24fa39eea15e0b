import itertools
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from speechmeter.core.machine import available_cores
from speechmeter.plan.study import study_from_file, study_from_python, tour

REPOSITORY = Path(__file__).parents[3]


def cells(study):
    return [(c.axes["seconds"], c.axes["batch"]) for c in study.cells.cases]


def test_the_grid_plan_has_every_cell():
    study = study_from_file(REPOSITORY / "plans/audio-grid.yaml")
    assert cells(study) == list(itertools.product([1, 2, 5, 8, 32], [1, 4, 8]))
    assert study.cells.skipped == ()


def test_triangle_skips_exactly_the_recipes_cells():
    plan = yaml.safe_load((REPOSITORY / "plans/audio-grid.yaml").read_text())
    study = study_from_python({**plan, "triangle": True})
    skipped = {(s.case.axes["seconds"], s.case.axes["batch"]) for s in study.cells.skipped}
    assert skipped == {(5, 8), (8, 4), (8, 8), (32, 4), (32, 8)}
    assert len(study.cells.cases) == 10


def test_the_triangle_of_one_row_skips_nothing():
    study = study_from_python({"models": "log-mel", "seconds": 1, "batch": [1, 4, 8], "triangle": True})
    assert study.cells.skipped == ()


def test_an_axis_reaches_only_the_subjects_that_declare_it():
    study = study_from_python({"models": ["log-mel", "transformers:wav2vec2"], "max_new_tokens": [4, 8]})
    by_model = [(c.subject.name, c.axes.get("max_new_tokens")) for c in study.cells.cases]
    assert by_model == [("log-mel", None), ("wav2vec2", 4), ("wav2vec2", 8)]


IDS = {
    "hubert": "374a9fda2d64825e", "wav2vec2": "1604dab314988a1f", "mockingjay": "732da570874fd561",
    "tera": "749dd1203a78e63e", "apc": "2da77f58d21d2ea7", "cpc": "b19dfca8eeddb793",
    "conformer-ctc": "65ec7f66231519a2", "log-mel": "5d22aca53369e2ad",
}  # fmt: skip
"""As they were before these models could be quantised."""


@pytest.mark.parametrize("model", IDS)
def test_an_axis_that_came_late_does_not_change_the_ids_of_cases_without_it(model):
    plan = {"models": model, "seconds": 1, "threads": 2, "cores": 2}
    assert [case.id for case in study_from_python(plan).cells.cases] == [IDS[model]]


def test_an_axis_that_came_late_makes_cases_where_it_is_set():
    plan = {"models": ["log-mel", "tera"], "quantize": ["none", "int8-dynamic"], "threads": 2, "cores": 2, "seconds": 1}
    cases = study_from_python(plan).cells.cases
    assert [(c.subject.name, c.axes.get("quantize")) for c in cases] == [
        ("log-mel", None), ("tera", None), ("tera", "int8-dynamic")]  # fmt: skip
    assert cases[1].id == IDS["tera"]


def test_in_a_cascade_an_axis_is_late_only_where_all_its_stages_have_it_so():
    def stages(*loads):
        return [{"name": f"s{place}", "load": load} for place, load in enumerate(loads)]

    def axes(*loads):
        plan = {"cascades": [{"name": "chain", "stages": stages(*loads)}], "threads": 2, "cores": 2}
        return study_from_python(plan).cells.cases[0].axes

    assert "quantize" not in axes("conformer-ctc", "conformer-ctc")
    assert axes("conformer-ctc", "transformers:marian")["quantize"] == "none"
    assert axes("transformers:marian", "conformer-ctc")["quantize"] == "none"


def test_absent_cores_and_threads_become_numbers():
    case = study_from_python({"models": "log-mel"}).cells.cases[0]
    assert case.axes["cores"] == case.axes["threads"] == len(available_cores())


def test_rounds_and_limits_do_not_change_ids():
    first = study_from_python({"models": "log-mel"})
    second = study_from_python({"models": "log-mel", "rounds": 9, "limits": {"time_s": 5}})
    assert [c.id for c in first.cells.cases] == [c.id for c in second.cells.cases]


def test_a_changed_audio_file_is_another_case(tmp_path):
    path = tmp_path / "a.wav"
    path.write_bytes(b"one")
    first = study_from_python({"models": "log-mel", "audio": str(path)}).cells.cases[0]
    path.write_bytes(b"two")
    assert study_from_python({"models": "log-mel", "audio": str(path)}).cells.cases[0].id != first.id


def test_paths_of_a_plan_start_from_its_folder(tmp_path, monkeypatch):
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "mine.py").write_text("def make(): ...")
    (tmp_path / "plans" / "p.yaml").write_text("models: [python:mine.py:make]\n")
    monkeypatch.chdir(tmp_path)
    study = study_from_file(Path("plans/p.yaml"), trust=True)
    assert study.cells.cases[0].subject.source == "plans/mine.py:make"


def test_the_tour_is_a_valid_plan_without_network():
    study = tour()
    assert {c.subject.plugin for c in study.cells.cases} == {"log-mel", "transformers", "pocketsphinx"}
    assert all(c.axes["device"] == "cpu" for c in study.cells.cases)


sweeps = st.fixed_dictionaries(
    {"models": st.just(["log-mel"])},
    optional={
        "seconds": st.lists(st.floats(0.01, 1e4), min_size=1, max_size=3, unique=True),
        "batch": st.lists(st.integers(1, 99), min_size=1, max_size=3, unique=True),
        "threads": st.lists(st.integers(1, 8), min_size=1, max_size=2, unique=True),
        "compile": st.lists(st.booleans(), min_size=1, unique=True),
        "rounds": st.integers(1, 9),
        "triangle": st.booleans(),
        "limits": st.fixed_dictionaries({}, optional={"time_s": st.floats(0.1, 1e5)}),
        "repeats": st.integers(1, 50),
        "seed": st.integers(0, 10**6),
    },
)


@settings(max_examples=60)
@given(sweeps)
def test_the_stored_plan_gives_the_same_cases(keys):
    study = study_from_python(keys)
    again = study_from_python(yaml.safe_load(study.plan_text()))
    assert [c.id for c in again.cells.cases] == [c.id for c in study.cells.cases]
    assert again.plan == study.plan
    swept = [keys.get(key, [0]) for key in ("seconds", "batch", "threads", "compile")]
    total = len(list(itertools.product(*swept)))
    assert len(study.cells.cases) + len(study.cells.skipped) == total


def test_cuts_of_many_lengths_have_no_axis_of_seconds():
    cuts = {"name": "audio", "count": 3, "shortest": 1.0, "longest": 2.0}
    (case,) = study_from_python({"models": ["log-mel"], "audio": "sample", "workload": cuts}).cells.cases
    assert "seconds" not in case.axes
    assert case.workload.options["count"] == 3


@pytest.mark.parametrize("kind", ["A100", {"cuda": "A100"}])
def test_the_kind_of_machine_is_no_part_of_a_case_and_is_kept_in_the_stored_plan(kind):
    plain, placed = study_from_python({"models": ["log-mel"]}), study_from_python({"models": ["log-mel"], "kind": kind})
    assert [case.id for case in placed.cells.cases] == [case.id for case in plain.cells.cases]
    assert placed.plan.kind["cuda"] == "A100"
    assert study_from_python(yaml.safe_load(placed.plan_text())).plan == placed.plan
