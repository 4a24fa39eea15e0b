"""What is told of a measuring process that came to a bad end."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import make_case

from speechmeter.core import guard
from speechmeter.core.outputs import Keep
from speechmeter.core.types import Limits, Spec
from speechmeter.engine.measure import Outcome
from speechmeter.launch.child import Job
from speechmeter.launch.executors import SubprocessExecutor
from speechmeter.launch.process import CHILD, MeasuringProcess

BAD = """
import os
import signal
import sys

from speechmeter import Prepared, Stage


def chain(fn):
    return Prepared(stages=(Stage(name="model", fn=fn),))


def named():
    return chain(lambda batch: os.kill(os.getpid(), signal.SIGTERM))


def nameless():
    return chain(lambda batch: os.kill(os.getpid(), 40))


def talking():
    print("last words")
    raise ValueError("unhappy")


def closing():
    print("last words", file=sys.stderr)
    sys.stdout.close()
    raise ValueError("unhappy")
"""


@pytest.fixture
def ended(tmp_path, monkeypatch):
    """What became of a model of `BAD`, and what is left of its output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    Path("bad.py").write_text(BAD)

    def outcome(name):
        case = make_case(subject=Spec(plugin="python", name=name, source=f"bad.py:{name}"))
        found = SubprocessExecutor(Limits(time_s=60), Keep(folder=tmp_path)).measure(case, lambda phase: None)
        return found, "".join(log.read_text() for log in tmp_path.glob("*.log"))

    return outcome


@pytest.mark.parametrize(("name", "signal"), [("named", "SIGTERM"), ("nameless", "signal 40")])
def test_a_signal_is_named_or_numbered(name, signal, ended):
    outcome, _ = ended(name)
    assert (outcome.status, outcome.reason) == ("crashed", f"killed by {signal} (phase: first call)")


@pytest.mark.parametrize("name", ["talking", "closing"])
def test_what_a_failed_model_printed_is_kept(name, ended):
    outcome, printed = ended(name)
    assert (outcome.status, "unhappy" in outcome.reason) == ("error", True)
    assert "last words" in printed


def test_a_measuring_process_imports_nothing_from_the_working_directory(tmp_path):
    """As on Python 3.10, which does not know PYTHONSAFEPATH."""
    for name in ("json", "contextlib", "speechmeter", "torch"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'started')!r}, 'w')\n")
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONSAFEPATH"}
    ended = subprocess.run(
        [sys.executable, *CHILD], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert "IndexError" in ended.stderr  # it asks for the number of its pipe
    assert not (tmp_path / "started").exists()


BOMB = """
import mmap
import os
import signal
import struct
import time

from speechmeter import Prepared, Stage

MOST, LIFE_S = 40, 20  # processes over all time, and seconds after which each ends by itself
made = mmap.mmap(-1, 8)
end_s = time.monotonic() + LIFE_S


def spread(apart):
    while time.monotonic() < end_s:
        count = struct.unpack("q", made[:8])[0]
        if count >= MOST:
            time.sleep(0.02)
            continue
        made[:8] = struct.pack("q", count + 1)
        if os.fork() == 0 and apart:
            os.setsid()
    open("ended-by-itself", "w").close()
    os._exit(0)


def start(apart, batch):
    if os.fork() == 0:
        spread(apart)
    while struct.unpack("q", made[:8])[0] < MOST:
        time.sleep(0.02)
    return batch


def together():
    return Prepared(stages=(Stage(name="model", fn=lambda batch: start(False, batch)),))


def apart():
    return Prepared(stages=(Stage(name="model", fn=lambda batch: start(True, batch)),))
"""


@pytest.mark.parametrize("name", ["together", "apart"])
def test_a_model_that_forks_without_end_is_ended_whole(name, tmp_path, monkeypatch):
    """Bounded in number and in time, so that it ends even where nobody ends it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORKED_BY", str(tmp_path))
    Path("bomb.py").write_text(BOMB)
    case = make_case(subject=Spec(plugin="python", name=name, source=f"bomb.py:{name}"))
    outcome = SubprocessExecutor(Limits(time_s=120), Keep(folder=tmp_path)).measure(case, lambda phase: None)
    assert outcome.status == "ok", outcome.reason
    assert any("were left running and were killed" in warning for warning in outcome.warnings)
    assert alive(f"FORKED_BY={tmp_path}".encode()) == []
    assert not Path("ended-by-itself").exists()


def alive(mark):
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes():
                    found.append(entry.name)
    return found


def test_a_case_whose_processes_ran_on_to_the_limit_is_a_timeout(tmp_path, monkeypatch):
    job = Job(case=make_case(), meters=("latency",), process="main", leads=True, spawned_ns=0)
    measuring = MeasuringProcess(job, {}, tmp_path / "log", lambda phase: None)

    def ran_on(time_s):
        measuring._outcome = Outcome(status="ok", measurements=())
        return False

    monkeypatch.setattr(measuring, "_measure", ran_on)
    outcome = measuring.run(20.0)
    assert (outcome.status, outcome.measurements) == ("timeout", ())
    assert (
        outcome.reason
        == "exceeded the limit of 20 s (phase: start); it was measured, but some of its processes did not end"
    )


def test_what_forks_while_it_is_looked_for_is_stopped_before_it_is_killed(monkeypatch):
    """Each process that is not stopped makes another, whenever somebody looks; one that is killed makes a last one."""
    alive_, stopped, signals = {1}, set(), []

    def look():
        for _ in list(alive_ - stopped):
            if len(alive_) < 1000:
                alive_.add(max(alive_) + 1)
        return sorted(alive_)

    def send(pid, number):
        signals.append(number)
        if number == signal.SIGSTOP:
            stopped.add(pid)
        else:
            assert pid in stopped
            alive_.discard(pid)

    monkeypatch.setattr(guard.os, "kill", send)
    monkeypatch.setattr(guard, "_STOPPING_S", 60.0)
    assert guard.stop_then_kill(look) == stopped
    assert alive_ == set()
    assert signals == sorted(signals, key=lambda number: number == signal.SIGKILL)


def test_all_that_descend_from_a_process_are_found():
    chain = "import os, time\nfor _ in range(3):\n    if os.fork():\n        break\ntime.sleep(30)"
    top = subprocess.Popen([sys.executable, "-c", chain], start_new_session=True)
    try:
        while len(guard.below(top.pid)) < 3:
            time.sleep(0.01)
        found = guard.below(top.pid)
        assert top.pid not in found
        assert set(found) < set(guard.below(os.getpid()))
    finally:
        os.killpg(top.pid, signal.SIGKILL)
        top.wait()
