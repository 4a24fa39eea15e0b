"""A search with an executor that decides by itself what fits: what is tried, what is kept, and what ends it."""

import math

import numpy as np
import pytest
import soundfile
from conftest import make_case

from speechmeter.core.errors import InterruptedRun
from speechmeter.core.finding import TARGETS
from speechmeter.core.protocol import SearchProtocol
from speechmeter.core.types import Skip, Spec
from speechmeter.engine.measure import Outcome
from speechmeter.launch.search import Search, run_search
from speechmeter.store.run_dir import RunWriter


class Roomy:
    """An executor in which so many items × seconds fit. `ends` are sizes at which a trial ends otherwise."""

    def __init__(self, room, ends=None, interrupt_after=None):
        self._room = room
        self._ends = ends or {}
        self._interrupt_after = interrupt_after
        self.asked = []

    def measure(self, case, report, extent="all", round_=0):
        if len(self.asked) == self._interrupt_after:
            raise KeyboardInterrupt
        batch = case.axes["batch"]
        self.asked.append(batch)
        if batch in self._ends:
            return Outcome(status=self._ends[batch], reason="why")
        return Outcome(status="ok" if batch * case.axes.get("seconds", 1.0) <= self._room else "oom")


def line(seconds=1.0, start=1, name="fake", **changes):
    protocol = SearchProtocol(find="max-batch")
    return make_case(name, seconds=seconds, batch=start, protocol=protocol, **changes)


def searched(tmp_path, place, lines=(), most=1024, events=None, **fields):
    search = Search(lines=lines or [line()], target=TARGETS["max-batch"], most=most, within=0.0, **fields)
    with RunWriter(tmp_path / "run") as store:
        store.begin("")
        try:
            run_search(search, place, store, (lambda event: None) if events is None else events.append)
        finally:
            records = store.records()
    return records


def edge(records, **axes):
    tried = {r.case.axes["batch"]: r.status for r in records if all(r.case.axes[k] == v for k, v in axes.items())}
    return (
        max((size for size, status in tried.items() if status == "ok"), default=None),
        min((size for size, status in tried.items() if status == "oom"), default=None),
    )


@pytest.mark.parametrize("room", [1, 2, 37, 64, 700])
def test_every_trial_is_a_record_and_there_are_few(tmp_path, room):
    place = Roomy(room)
    records = searched(tmp_path, place)
    assert [r.case.axes["batch"] for r in records] == place.asked
    assert edge(records) == (room, room + 1)
    assert len(records) <= 2 * math.log2(room) + 3


def test_each_line_is_searched_on_its_own(tmp_path):
    records = searched(tmp_path, Roomy(60), [line(1.0), line(10.0), line(30.0)])
    assert [edge(records, seconds=s) for s in (1.0, 10.0, 30.0)] == [(60, 61), (6, 7), (2, 3)]


@pytest.mark.parametrize("stopped_after", [0, 3, 8])
def test_a_search_that_was_stopped_goes_on_without_repeating_a_trial(tmp_path, stopped_after):
    whole = Roomy(37)
    searched(tmp_path / "whole", whole)
    first, second = Roomy(37, interrupt_after=stopped_after), Roomy(37)
    with pytest.raises(InterruptedRun):
        searched(tmp_path, first)
    records = searched(tmp_path, second)
    assert first.asked + second.asked == whole.asked
    assert edge(records) == (37, 38)


@pytest.mark.parametrize("status", ["timeout", "error", "crashed"])
def test_another_failure_ends_its_line_and_no_other(tmp_path, status):
    place = Roomy(100, ends={16: status})
    records = searched(tmp_path, place, [line(1.0), line(25.0)])
    assert place.asked[:5] == [1, 2, 4, 8, 16]
    assert edge(records, seconds=1.0) == (8, None)
    assert edge(records, seconds=25.0) == (4, 5)


def test_retrying_repeats_what_failed_otherwise_and_keeps_what_ran_out_of_memory(tmp_path):
    searched(tmp_path, Roomy(20, ends={24: "timeout"}))
    again = Roomy(20)
    records = searched(tmp_path, again, retry_failed=True)
    assert again.asked[0] == 24 and 32 not in again.asked
    assert edge(records) == (20, 21)


def test_the_cap_is_never_passed(tmp_path):
    records = searched(tmp_path, Roomy(10**6), most=100)
    assert edge(records) == (100, None)
    assert max(r.case.axes["batch"] for r in records) == 100


def test_a_lower_cap_adds_nothing_to_a_search_that_went_beyond_it(tmp_path):
    whole = searched(tmp_path, Roomy(99))
    again = Roomy(99)
    assert searched(tmp_path, again, most=70) == whole and again.asked == []


def test_where_the_input_ends_the_search_ends(tmp_path):
    shapes = Spec(plugin="shapes", name="shapes", options={"count": 50, "steps": 1})
    axes = {"max_frames": None, "sort": None, "pairing": "utterance", "subsampling": 4}
    records = searched(tmp_path, Roomy(10**6), [line(workload=shapes, **axes)])
    assert edge(records) == (50, None)


@pytest.fixture
def three_recordings(tmp_path):
    folder = tmp_path / "sounds"
    folder.mkdir()
    for name in "abc":
        soundfile.write(folder / f"{name}.wav", np.zeros(1600, np.float32), 16_000)
    (tmp_path / "lines.txt").write_text("one\ntwo\nthree\n")
    return folder


def test_no_kind_of_input_is_searched_beyond_its_end(tmp_path, three_recordings):
    cuts = {"count": 3, "shortest": 0.1, "longest": 0.2}
    inputs = [
        Spec(plugin="audio", name="sounds", source=str(three_recordings)),
        Spec(plugin="audio", name="cuts", source="noise", options=cuts),
        Spec(plugin="data", name="sounds", options={"manifest": str(three_recordings)}),
        Spec(plugin="text", name="lines", options={"lines": str(tmp_path / "lines.txt")}),
        Spec(plugin="text", name="ids", options={"vocabulary": 50, "count": 3}),
        Spec(plugin="features", name="features", options={"count": 3}),
    ]
    for number, workload in enumerate(inputs):
        records = searched(tmp_path / str(number), Roomy(10**6), [line(workload=workload)])
        assert edge(records) == (3, None), workload


def test_an_interruption_says_how_many_trials_are_kept(tmp_path):
    with pytest.raises(InterruptedRun, match="6 trials measured and saved"):
        searched(tmp_path, Roomy(37, interrupt_after=6))


def test_lines_that_cannot_be_had_get_a_record_with_the_reason(tmp_path):
    absent = line(name="absent")
    place = Roomy(3)
    records = searched(tmp_path, place, [absent, line()], unavailable=[Skip(case=absent, reason="not here")])
    assert [(r.status, r.reason) for r in records[:1]] == [("unavailable", "not here")]
    assert place.asked == [1, 2, 4, 3]


def test_events_count_the_trials_of_the_whole_search(tmp_path):
    events = []
    records = searched(tmp_path, Roomy(30), [line(1.0), line(10.0)], events=events)
    finished = [event for event in events if event.kind == "finished"]
    assert [event.done for event in finished] == list(range(1, len(records) + 1))
    assert finished[-1].done == finished[-1].total
    assert all(event.total >= event.done for event in events)
