"""Which code a measuring process has loaded, wherever its files are."""

import importlib
import sys

import pytest

from speechmeter.engine.environment import loaded_code


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Import `project_of_test` from a folder, with this content."""

    def imported(folder, content):
        place = tmp_path / folder
        place.mkdir(exist_ok=True)
        (place / "project_of_test.py").write_text(content)
        monkeypatch.syspath_prepend(str(place))
        monkeypatch.delitem(sys.modules, "project_of_test", raising=False)
        importlib.invalidate_caches()
        importlib.import_module("project_of_test")
        found = loaded_code()
        monkeypatch.delitem(sys.modules, "project_of_test")
        return found

    return imported


def test_the_same_code_has_the_same_digest_wherever_it_is(project):
    first, second = project("a", "x = 1\n"), project("b", "x = 1\n")
    assert first["digest"] == second["digest"]


def test_another_line_has_another_digest(project):
    assert project("a", "x = 1\n")["digest"] != project("b", "x = 2\n")["digest"]


def test_a_module_of_the_working_folder_is_told_from_one_elsewhere(project, tmp_path, monkeypatch):
    assert project("a", "x = 1\n")["modules"]["project_of_test"] == "elsewhere"
    monkeypatch.chdir(tmp_path)
    assert project("b", "x = 1\n")["modules"]["project_of_test"] == "working folder"


def test_versions_are_those_of_the_imported_distributions(project):
    import numpy

    assert project("a", "import numpy\n")["versions"]["numpy"] == numpy.__version__
