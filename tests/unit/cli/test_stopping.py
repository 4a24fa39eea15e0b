"""A run that ends early says how far it came, where it is, and what to type to continue it."""

import shlex
from pathlib import Path

import pytest

from speechmeter.api import rerunning, runs, starting
from speechmeter.cli.errors import resume_command
from speechmeter.core.errors import CannotGoOnError
from speechmeter.core.types import Measurement
from speechmeter.engine.measure import Outcome

RUN = ("run", "--model", "python:fakes.py:nothing", "--seconds", "0.1,0.2", "--rounds", "2", "--meters", "latency")


class Stopping:
    """An executor in which the third measurement is interrupted."""

    def __init__(self, *args, stop=KeyboardInterrupt, **options):
        self._stop = stop
        self._left = 2

    def measure(self, case, report, extent="all", round_=0):
        self._left -= 1
        if self._left < 0:
            raise self._stop
        return Outcome(status="ok", measurements=(Measurement(metric="latency.v1", unit="s", values=(0.1,)),))

    def close(self):
        pass


@pytest.fixture
def here(workshop, monkeypatch):
    monkeypatch.chdir(workshop)
    monkeypatch.setattr(runs, "SubprocessExecutor", Stopping)
    return workshop


def test_an_interrupted_run_names_its_folder_and_the_command_that_continues_it(command, here, monkeypatch):
    done = command(*RUN, "--set", "name=my study", "-o", "my run")
    assert done.code == 130
    *_, said, see, way_out = done.err.splitlines()
    assert said == "speechmeter: interrupted; 2 of 4 measured and saved in my run"
    assert see == "to see what was measured: speechmeter show 'my run'"
    shown = command(*shlex.split(see.removeprefix("to see what was measured: speechmeter ")))
    assert shown.code == 0 and "2 of 2 cases have fewer than 2 rounds" in shown.err and "100 ms" in shown.out
    words = "speechmeter run --model python:fakes.py:nothing --seconds 0.1,0.2 --rounds 2 --meters latency"
    assert way_out == f"to continue: {words} --set 'name=my study' --resume -o 'my run'"
    monkeypatch.setattr(runs, "SubprocessExecutor", lambda *args: Stopping(*args))
    again = command(*shlex.split(way_out.removeprefix("to continue: speechmeter ")))
    assert (again.code, len((here / "my run/records.jsonl").read_text().splitlines())) == (0, 4), again.err


def test_an_interrupted_run_in_a_folder_of_its_own_choice_names_it_too(command, here):
    done = command(*RUN)
    (made,) = (here / "runs").iterdir()
    assert f"saved in runs/{made.name}" in done.err
    assert done.err.rstrip().endswith(f"--resume -o runs/{made.name}")


def test_a_run_that_cannot_go_on_says_the_same(command, here, monkeypatch):
    stop = CannotGoOnError("the device is lost", resume_with={"launcher": "subprocess"})
    monkeypatch.setattr(runs, "InlineExecutor", lambda *args: Stopping(stop=stop))
    done = command(*RUN, "--launcher", "inline", "--force", "-o", "out")
    assert done.code == 1
    *_, said, see, way_out = done.err.splitlines()
    assert said == "speechmeter: the device is lost; 2 of 4 measured and saved in out"
    assert see == "to see what was measured: speechmeter show out"
    assert way_out.endswith("--meters latency --launcher subprocess --resume -o out")


def test_a_search_that_is_interrupted_says_the_same(command, here):
    done = command(*RUN[:4], "0.1", "--meters", "latency", "--find", "max-batch", "-o", "out")
    assert done.code == 130
    *_, said, see, way_out = done.err.splitlines()
    assert said == "speechmeter: interrupted; 2 trials measured and saved in out"
    assert see.endswith(" show out")
    assert way_out.endswith("--find max-batch --resume -o out")


def test_an_interruption_before_anything_is_measured_leaves_nothing_to_continue(command, here, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(starting, "preflight", interrupted)
    done = command(*RUN, "-o", "out")
    assert (done.code, done.err) == (130, "speechmeter: interrupted; nothing was measured or written\n")
    assert not Path("out").exists()


def test_an_interrupted_repetition_names_its_folder_and_no_command(command, here, monkeypatch):
    monkeypatch.setattr(runs, "SubprocessExecutor", lambda *args: Stopping(stop=AssertionError))
    assert command(*RUN[:4], "0.1", "--rounds", "2", "--meters", "latency", "-o", "first").code == 0
    case_id = next(iter(runs.load("first").records)).case.id
    monkeypatch.setattr(rerunning, "SubprocessExecutor", Stopping)
    done = command("rerun", "first", case_id, "--rounds", "3", "--trust", "-o", "again")
    assert (done.code, done.err.splitlines()[-2:]) == (
        130,
        [
            "speechmeter: interrupted; 2 of 3 measured and saved in again",
            "to see what was measured: speechmeter show again",
        ],
    )


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("run", "run"),
        ("run grid.yaml --force", "run grid.yaml"),
        ("run -o a --resume --retry-failed", "run --retry-failed"),
        ("run --output a grid.yaml", "run grid.yaml"),
        ("run --output=a -ob", "run"),
        ("run --model m=python:a.py:b --offline", "run --model m=python:a.py:b --offline"),
        ("run --set 'data={manifest: a b}'", "run --set 'data={manifest: a b}'"),
    ],
)
def test_the_command_that_continues_a_run_keeps_every_word_but_the_place(words, kept):
    assert resume_command(shlex.split(words), Path("runs/x y")) == f"speechmeter {kept} --resume -o 'runs/x y'"
