"""From a factory to a model that a fresh process can load."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import make_case

from speechmeter.core.errors import SubjectError
from speechmeter.core.types import Spec
from speechmeter.integrations.pytest.naming import case_name, load_of
from speechmeter.subjects.python import load_factory

SOURCE = "def make():\n    return max\n"


def module(path: Path, source: str = SOURCE):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    spec = spec_from_file_location(path.stem, path)
    made = module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_a_factory_is_named_by_its_file_from_the_root(tmp_path):
    made = module(tmp_path / "checks/test_speed.py")
    test = SimpleNamespace(module=made)
    assert load_of(made.make, test, tmp_path) == "python:checks/test_speed.py:make"
    assert load_of("make", test, tmp_path) == "python:checks/test_speed.py:make"


def test_a_factory_in_a_package_is_named_by_its_module(tmp_path, monkeypatch):
    made = module(tmp_path / "checks_of_mine/deep/speed.py")
    for folder in ("checks_of_mine", "checks_of_mine/deep"):
        (tmp_path / folder / "__init__.py").touch()
    load = load_of(made.make, SimpleNamespace(module=made), tmp_path)
    assert load == "python:checks_of_mine.deep.speed:make"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    subject = Spec(plugin="python", name="x", source=load.removeprefix("python:"))
    assert load_factory(make_case(subject=subject))() is max


def test_a_factory_in_a_package_below_the_root_is_named_by_its_file(tmp_path):
    made = module(tmp_path / "backend/tests/test_y.py")
    (tmp_path / "backend/tests/__init__.py").touch()
    assert load_of(made.make, SimpleNamespace(module=made), tmp_path) == "python:backend/tests/test_y.py:make"


def test_a_factory_of_an_installed_package_is_named_by_its_module(tmp_path):
    test = SimpleNamespace(module=SimpleNamespace(here=load_factory))
    assert load_of("here", test, tmp_path) == "python:speechmeter.subjects.python:load_factory"


def test_a_factory_that_was_imported_by_another_name_has_its_own(tmp_path):
    made = module(tmp_path / "models.py")
    test = SimpleNamespace(module=SimpleNamespace(encoder=made.make))
    assert load_of("encoder", test, tmp_path) == "python:models.py:make"


def test_what_has_no_name_of_its_own_is_found_in_the_file_of_the_test(tmp_path):
    made = module(tmp_path / "test_speed.py", "encoder = lambda: max\n")
    assert load_of("encoder", SimpleNamespace(module=made), tmp_path) == "python:test_speed.py:encoder"


def test_a_decorated_factory_is_named_by_the_file_it_stands_in(tmp_path):
    made = module(tmp_path / "test_speed.py", f"import contextlib\n\n@contextlib.contextmanager\n{SOURCE}")
    for subject in ("make", made.make):
        assert load_of(subject, SimpleNamespace(module=made), tmp_path) == "python:test_speed.py:make"


def test_a_class_is_a_factory_by_name_as_well(tmp_path, monkeypatch):
    made = module(tmp_path / "test_with_a_class.py", "class Encoder:\n    pass\n")
    monkeypatch.setitem(sys.modules, "test_with_a_class", made)
    for subject in ("Encoder", made.Encoder):
        assert load_of(subject, SimpleNamespace(module=made), tmp_path) == "python:test_with_a_class.py:Encoder"


def test_any_other_name_is_that_of_a_plan(tmp_path):
    test = SimpleNamespace(module=module(tmp_path / "test_speed.py"))
    assert load_of("log-mel", test, tmp_path) == "log-mel"
    assert load_of("python:a.py:b", test, tmp_path) == "python:a.py:b"


def test_what_a_fresh_process_cannot_import_is_refused(tmp_path):
    def inner():
        return max

    test = SimpleNamespace(module=module(tmp_path / "test_speed.py"))
    for subject in (inner, lambda: max, max, int, 3):
        with pytest.raises(SubjectError, match="top level of a file"):
            load_of(subject, test, tmp_path)


def a_test(root, name, cls=None):
    node = SimpleNamespace(name=name, nodeid=f"checks/test_speed.py::{name}@group")
    return SimpleNamespace(path=root / "checks/test_speed.py", cls=cls, node=node)


def test_a_case_is_named_after_its_test_whatever_worker_runs_it(tmp_path):
    test = a_test(tmp_path, "test_a[5]", type("TestIt", (), {}))
    assert case_name(test, tmp_path) == "checks/test_speed.py::TestIt::test_a[5]"


def test_a_name_that_two_tests_give_tells_them_apart_all_the_same(tmp_path):
    names = [case_name(a_test(tmp_path, name), tmp_path, "encoder") for name in ("test_a", "test_b")]
    assert names == ["checks/test_speed.py::test_a::encoder", "checks/test_speed.py::test_b::encoder"]


def test_classes_within_classes_are_told_apart(tmp_path):
    class TestOuter:
        class TestInner:
            pass

    TestOuter.TestInner.__qualname__ = "TestOuter.TestInner"  # as at the top level of a file
    name = case_name(a_test(tmp_path, "test_a", TestOuter.TestInner), tmp_path)
    assert name == "checks/test_speed.py::TestOuter::TestInner::test_a"
