"""Whether a run is complete, as far as its directory says what was planned."""

import pytest
from conftest import make_case, make_record

from speechmeter.store.run_dir import PLANNED_FILE, Planned, RunDir, unfinished


def records(**rounds):
    return [make_record(make_case(name), round=n) for name, count in rounds.items() for n in range(count)]


def plan(folder, *names, rounds=2):
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
    plan(tmp_path, "a", "b", "c")
    assert unfinished(tmp_path, records(**rounds)) == left


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
    plan(tmp_path / "elsewhere", "a")
    (tmp_path / PLANNED_FILE).symlink_to(tmp_path / "elsewhere" / PLANNED_FILE)
    assert RunDir(tmp_path).planned() is None
