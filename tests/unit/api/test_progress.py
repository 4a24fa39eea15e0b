"""Progress of a run that a Python program starts: in a notebook one output, elsewhere only where it is asked for."""

import io
import re
import sys
from types import SimpleNamespace

import pytest
from conftest import make_case, make_record
from rich.console import Console

from speechmeter.api.progress import progress, shown_progress
from speechmeter.core import metrics
from speechmeter.core.types import Measurement
from speechmeter.launch.recorder import Event


class Handle:
    """What IPython gives for an output: it is displayed once and then replaced."""

    shown: list

    def __init__(self):
        Handle.shown = []

    def display(self, data, raw):
        assert raw
        assert Handle.shown == []
        Handle.shown.append(data["text/plain"])

    def update(self, data, raw):
        assert raw
        assert Handle.shown
        Handle.shown.append(data["text/plain"])


@pytest.fixture
def notebook(monkeypatch):
    """An IPython that has a kernel."""
    display = SimpleNamespace(DisplayHandle=Handle)
    fake = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()), display=display)
    monkeypatch.setitem(sys.modules, "IPython", fake)


def events():
    """A case that starts and is measured, and one that fails."""
    case, other = make_case("good"), make_case("bad")
    measured = make_record(case, Measurement.of(metrics.LATENCY, [0.5]))
    failed = make_record(other, status="oom", reason="3 GiB more than there is")
    yield Event(kind="started", case=case, round=0, done=0, total=2)
    yield Event(kind="finished", case=case, round=0, done=1, total=2, record=measured)
    yield Event(kind="finished", case=other, round=0, done=2, total=2, record=failed)


@pytest.mark.parametrize("wanted", [None, True])
def test_a_notebook_has_one_output_that_keeps_failures(notebook, wanted):
    with shown_progress(wanted) as watch:
        for event in events():
            watch(event)
    first, *_, last = Handle.shown
    assert "0/2" in first
    assert "good" in first
    assert "oom: 3 GiB more than there is" in last
    assert "500 ms" not in last
    assert last.splitlines()[-1].startswith("2 of 2 measured in ")


def test_a_run_that_is_refused_shows_nothing(notebook):
    with pytest.raises(ValueError, match="refused"), shown_progress(None):
        raise ValueError("refused")
    assert Handle.shown == []


def test_elsewhere_progress_is_shown_where_it_is_asked_for(capsys):
    for wanted, lines in ((None, 0), (False, 0), (True, 2)):
        with shown_progress(wanted) as watch:
            for event in events():
                watch(event)
        seen = capsys.readouterr()
        assert seen.out == ""
        assert len(seen.err.splitlines()) == lines


def test_ipython_in_a_terminal_is_no_notebook(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace()))
    with shown_progress(None) as watch:
        for event in events():
            watch(event)
    assert capsys.readouterr() == ("", "")


def rounds_of(records):
    """The events of a case that is measured again and again, and of another that fails in the last round."""
    known = []
    for record in records:
        case, done = record.case, len(known)
        yield Event(kind="started", case=case, round=record.round, done=done, total=5, known=lambda: list(known))
        known.append(record)
        yield Event(
            kind="finished", case=case, round=record.round, done=done + 1, total=5, record=record,
            known=lambda: list(known),
        )  # fmt: skip


def timed(case, round_, *seconds):
    return make_record(case, Measurement.of(metrics.LATENCY, seconds), round=round_, wall_s=2.0)


def shown(records, height=30, **terminal):
    console = Console(file=io.StringIO(), width=100, height=height, color_system=None, **terminal)
    with progress(console) as watch:
        for event in rounds_of(records):
            watch(event)
    return re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", console.file.getvalue())


def two_rounds():
    good, bad = make_case("good"), make_case("bad")
    failed = make_record(bad, status="oom", reason="3 GiB more than there is", round=1)
    return [timed(good, 0, 0.5), timed(bad, 0, 0.2), failed, timed(good, 1, 0.51)]


def test_a_terminal_shows_the_figures_so_far_from_the_second_round_on():
    text = shown(two_rounds(), force_terminal=True)
    first_table = text.index("so far")
    assert text.count("[1/5] good") == text.count("[2/5] bad") == 1  # the first round is a line each, before the table
    assert text.index("[2/5] bad") < first_table
    assert "[4/5] good" not in text and "[3/5] bad" in text  # later a failure alone
    assert "500 ms " in text and "505 ms ±13%" in text  # without an interval after one round, then with one
    assert "left" in text


def test_a_log_file_has_one_line_for_each_measurement_and_no_table():
    lines = shown(two_rounds()).splitlines()
    assert [line[:5] for line in lines] == ["[1/5]", "[2/5]", "[3/5]", "[4/5]"]


def test_a_terminal_that_is_too_small_for_the_table_has_none():
    text = shown(two_rounds(), force_terminal=True, height=7)
    assert "so far" not in text and "4/5" in text
