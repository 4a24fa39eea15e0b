"""What is told of a measuring process that came to a bad end."""

from pathlib import Path

import pytest
from conftest import make_case

from speechmeter.core.outputs import Keep
from speechmeter.core.types import Limits, Spec
from speechmeter.launch.places import SubprocessPlace

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
        found = SubprocessPlace(Limits(time_s=60), Keep(folder=tmp_path)).measure(case, lambda phase: None)
        return found, "".join(log.read_text() for log in tmp_path.glob("*.log"))

    return outcome


@pytest.mark.parametrize(("name", "signal"), [("named", "SIGTERM"), ("nameless", "signal 40")])
def test_a_signal_is_named_or_numbered(name, signal, ended):
    outcome, _ = ended(name)
    assert (outcome.status, outcome.reason) == ("crashed", f"killed by {signal}, in first call")


@pytest.mark.parametrize("name", ["talking", "closing"])
def test_what_a_failed_model_printed_is_kept(name, ended):
    outcome, printed = ended(name)
    assert (outcome.status, "unhappy" in outcome.reason) == ("error", True)
    assert "last words" in printed
