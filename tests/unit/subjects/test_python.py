"""Which of two versions of a package is measured: the working folder's, or the one that is installed."""

import sys

import pytest
from conftest import make_case

from speechmeter.core.types import VARIANT, Spec
from speechmeter.subjects.python import load_factory


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A working folder with the package `ours_v`, another version of which is installed, and a module beside it."""
    for place, version in (("checkout", "new"), ("installed", "old")):
        package = tmp_path / place / "ours_v"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(f"def make():\n    return {version!r}\n")
    (tmp_path / "checkout/speed_v.py").write_text("from ours_v import make\n")
    monkeypatch.chdir(tmp_path / "checkout")
    monkeypatch.setattr(sys, "path", ["", *sys.path, str(tmp_path / "installed")])
    monkeypatch.setattr(sys, "modules", dict(sys.modules))


@pytest.mark.parametrize("source", ["speed_v.py:make", "speed_v:make", "ours_v:make"])
@pytest.mark.parametrize(("variant", "version"), [("this", "new"), ("baseline", "old"), (None, "new")])
def test_the_other_interpreter_measures_what_it_has_installed(checkout, source, variant, version):
    axes = {} if variant is None else {VARIANT: variant}
    case = make_case(subject=Spec(plugin="python", name="x", source=source), **axes)
    assert load_factory(case)() == version
