"""`speechmeter init`: copies what the repository has, replaces nothing unasked, and the copies work."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

import speechmeter
from speechmeter.api import shipped
from speechmeter.cli.main import app
from speechmeter.core.errors import InputError

ROOT = Path(__file__).parents[3]


def init(*words):
    return CliRunner().invoke(app, ["init", *map(str, words)], catch_exceptions=False).output


def test_plans_and_examples_are_copied_byte_for_byte(tmp_path):
    text = init(tmp_path / "start")
    for path in (ROOT / "plans").glob("*"):
        assert (tmp_path / "start/plans" / path.name).read_bytes() == path.read_bytes()
    runs = [path.name for path in (ROOT / "examples/runs").iterdir()]
    for name in runs:
        assert len(speechmeter.load(tmp_path / "start/examples/runs" / name).records) > 0
    assert f"{len(list((ROOT / 'plans').glob('*.yaml')))} plans in {tmp_path}/start/plans" in text
    assert f"{len(runs)} example runs in {tmp_path}/start/examples/runs" in text
    assert f"cd {tmp_path}/start\n" in text


def test_without_a_folder_they_go_into_the_current_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "cd " not in init()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["examples", "plans"]


def test_a_file_that_exists_is_kept_and_nothing_else_is_written(tmp_path):
    (tmp_path / "plans").mkdir()
    mine = tmp_path / "plans/audio-grid.yaml"
    mine.write_text("models: [mine]")
    with pytest.raises(InputError, match=r"plans/audio-grid.yaml: this file already exists; use another folder"):
        init(tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [mine]
    init(tmp_path, "--force")
    assert mine.read_bytes() == (ROOT / "plans/audio-grid.yaml").read_bytes()


def test_a_link_that_is_there_is_replaced_and_not_written_through(tmp_path):
    (tmp_path / "start/plans").mkdir(parents=True)
    (tmp_path / "start/plans/audio-grid.yaml").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="already exists"):
        init(tmp_path / "start")
    init(tmp_path / "start", "--force")
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_instead_of_a_folder_is_refused(tmp_path):
    (tmp_path / "start").write_text("")
    with pytest.raises(InputError, match="this is a file, not a folder"):
        init(tmp_path / "start")


def test_the_wheel_holds_what_is_copied():
    packed = (ROOT / "pyproject.toml").read_text().partition("[tool.hatch.build.targets.wheel.force-include]")[2]
    assert shipped.FOLDERS
    for name in shipped.FOLDERS:
        assert f'"{name}" = "speechmeter/shipped/{name}"' in packed


def test_an_installed_package_copies_its_own(tmp_path, monkeypatch):
    package = tmp_path / "site/speechmeter"
    (package / "shipped/plans").mkdir(parents=True)
    (package / "shipped/plans/one.yaml").write_text("models: []")
    monkeypatch.setattr(shipped, "_PACKAGE", package)
    copied = shipped.copy_shipped(tmp_path / "here")
    assert (copied.plans, copied.runs) == (("one.yaml",), ())
    assert (tmp_path / "here/plans/one.yaml").read_text() == "models: []"
