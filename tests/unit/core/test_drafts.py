"""Files that are written whole or not at all."""

import os
import subprocess
import sys

import pytest

from speechmeter.core.files import draft_folder, whole_file


def test_the_file_is_there_when_all_is_written(tmp_path):
    with whole_file(tmp_path / "x") as draft:
        draft.write_text("new")
        assert not (tmp_path / "x").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_what_was_there_stays_where_writing_fails(tmp_path):
    (tmp_path / "x").write_text("old")
    with pytest.raises(ValueError, match="no"), whole_file(tmp_path / "x") as draft:
        draft.write_text("half")
        raise ValueError("no")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("x", "old")]


def test_no_link_in_the_folder_is_written_through(tmp_path):
    (tmp_path / "outside").write_text("mine")
    for name in (".x.new", ".x.part", "x.part", ".x"):
        (tmp_path / name).symlink_to(tmp_path / "outside")
    with whole_file(tmp_path / "x") as draft:
        draft.write_text("new")
    assert (tmp_path / "outside").read_text() == "mine"


def test_the_longest_name_can_be_written(tmp_path):
    path = tmp_path / ("x" * 255)
    with whole_file(path) as draft:
        draft.write_text("new")
    assert path.read_text() == "new"


def test_the_file_has_the_rights_that_the_user_gives_to_new_ones(tmp_path):
    before = os.umask(0o027)
    try:
        with whole_file(tmp_path / "x"):
            pass
    finally:
        os.umask(before)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o640


def kill_within(kind, folder):
    """A process that is killed while its draft is there, as `kill -9` does; what it left."""
    code = f"""
import os
from pathlib import Path
from speechmeter.core.files import draft_folder, whole_file
with {"whole_file(Path('x'))" if kind == "file" else "draft_folder(Path('.'))"} as draft:
    if {kind != "file"}:
        (draft / "records.jsonl").write_text("half")
    os.kill(os.getpid(), 9)
"""
    ended = subprocess.run([sys.executable, "-c", code], cwd=folder, check=False)
    assert ended.returncode == -9
    return [path for path in folder.iterdir() if path.name.startswith(".speechmeter-draft-")]


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_the_draft_of_a_process_that_was_killed_is_removed_by_the_next(tmp_path, kind):
    (left,) = kill_within(kind, tmp_path)
    with whole_file(tmp_path / "y") as draft:
        assert not left.exists()
        draft.write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["y"]


def test_the_draft_of_a_process_that_lives_is_kept(tmp_path):
    with draft_folder(tmp_path) as one, whole_file(tmp_path / "x") as two, draft_folder(tmp_path) as three:
        assert one.is_dir()
        assert two.is_file()
        assert three.is_dir()
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_what_only_looks_like_a_draft_or_is_of_another_machine_is_kept(tmp_path):
    with whole_file(tmp_path / "x") as draft:
        host = draft.name.rpartition("-")[0]
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "mine").write_text("kept")
    (tmp_path / f"{host}-0").symlink_to(tmp_path / "outside")
    (tmp_path / ".speechmeter-draft-elsewhere-0").mkdir()
    (tmp_path / ".x.new").write_text("kept")
    with whole_file(tmp_path / "x"):
        pass
    assert (tmp_path / "outside" / "mine").read_text() == "kept"
    assert (tmp_path / ".speechmeter-draft-elsewhere-0").is_dir()
    assert (tmp_path / ".x.new").is_file()
