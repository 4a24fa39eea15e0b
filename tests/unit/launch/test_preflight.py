"""A plug-in that does something else than answer is refused in one line."""

import sys

import pytest
from conftest import make_case

from speechmeter.core import plugins
from speechmeter.core.errors import PlanError
from speechmeter.core.protocols import Installed
from speechmeter.launch.preflight import check_baseline, preflight


class Broken:
    def __init__(self, where, what):
        self._where, self._what = where, what

    def _at(self, where):
        if where == self._where:
            self._what()

    def installed(self):
        self._at("installed")
        return Installed(version="1")

    def unavailable(self, case):
        self._at("unavailable")

    def check(self, case):
        self._at("check")


@pytest.mark.parametrize("what", [lambda: 1 / 0, lambda: sys.exit(3), lambda: bytearray(2**62)])
@pytest.mark.parametrize("where", ["installed", "unavailable", "check"])
def test_a_broken_plugin_is_named(where, what, monkeypatch):
    monkeypatch.setattr(plugins, "subject", lambda name: Broken(where, what))
    with pytest.raises(PlanError, match=r"the plug-in 'python' failed when asked about fake.*; leave it out") as caught:
        preflight([make_case()])
    assert "\n" not in str(caught.value)


def test_an_interrupt_is_none_of_its_business(monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(plugins, "subject", lambda name: Broken("check", interrupt))
    with pytest.raises(KeyboardInterrupt):
        preflight([make_case()])


def test_asking_the_other_interpreter_imports_nothing_from_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "speechmeter.py").write_text(f"open({str(tmp_path / 'started')!r}, 'w'); __version__ = '0'\n")
    monkeypatch.chdir(tmp_path)
    check_baseline(sys.executable)
    assert not (tmp_path / "started").exists()
