"""Tuning a simulated subject whose best configuration is known: what is chosen, what is not, and what a kill costs."""

import math
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import simulated_tuning
from simulated_tuning import EFFECTS, WORDS, Simulated, cases_of, tuned, tuning

from speechmeter.analysis.tuning import FRESH
from speechmeter.analysis.tuning_answer import answer_of
from speechmeter.core.errors import InterruptedRun
from speechmeter.core.types import Skip
from speechmeter.store.run_dir import RunDir

BEST = {"threads": 4, "batch": 4}


@pytest.fixture(autouse=True)
def outside_of_a_repository(tmp_path, monkeypatch):
    """Where no state of the code is asked for."""
    monkeypatch.chdir(tmp_path)


def test_the_best_configuration_is_chosen_and_its_gain_comes_from_fresh_rounds(tmp_path):
    place = Simulated()
    answer = answer_of(tuned(tmp_path, place))
    assert (answer.outcome, answer.answer.changes) == ("better", BEST)
    assert answer.gain.low <= math.exp(0.55) <= answer.gain.high and answer.gain.is_better
    fresh = [round_ for _, round_ in place.asked if round_ >= FRESH]
    assert answer.by_stage["fresh"] == len(fresh) > 0
    assert answer.gain.rounds == len(set(fresh))


def test_each_change_is_attributed_and_the_remainder_is_the_interaction(tmp_path):
    answer = answer_of(tuned(tmp_path, Simulated()))
    threads, batch = answer.contributions
    assert (threads.axis, threads.value, batch.axis, batch.value) == ("threads", 4, "batch", 4)
    assert threads.alone.low <= math.exp(0.3) <= threads.alone.high
    assert batch.removed.low <= math.exp(-0.25) <= batch.removed.high
    assert answer.interaction.low <= 1 <= answer.interaction.high


def test_where_all_are_equal_the_default_is_kept(tmp_path):
    answer = answer_of(tuned(tmp_path, Simulated(effects={})))
    assert (answer.outcome, answer.answer.changes) == ("same", {})


def test_a_faster_configuration_with_damaged_text_is_never_chosen_and_shown_with_the_reason(tmp_path):
    damaged = {**EFFECTS, ("quantize", "int8-dynamic"): -1.0}

    def errors(axes):
        return [3 if axes["quantize"] != "none" and at % 4 == 0 else 0 for at in range(WORDS)]

    for keep in ((), ("wer<=+0.3",)):
        folder = tmp_path / str(len(keep))
        answer = answer_of(tuned(folder, Simulated(damaged, errors), tuning(keep=keep)))
        assert answer.answer.changes == BEST
        refused = [one for one in answer.candidates if one.fate == "refused"]
        assert all(one.values["quantize"] == "int8-dynamic" for one in refused)
        faster = next(one for one in refused if one.changes == {"quantize": "int8-dynamic"})
        assert faster.change.is_better
        assert ("WER" if keep else "10 of 40 texts differ") in faster.reason


def test_a_beam_that_is_too_narrow_for_the_bound_is_never_chosen_and_one_that_is_proven_is(tmp_path):
    axes = {"beam": (5, 2, 1), "threads": (2, 4)}
    effects = {("beam", 2): -0.2, ("beam", 1): -0.6, ("threads", 4): -0.1}

    def errors(axes):  # of 800 words: beam 2 gets two right that 5 got wrong, beam 1 gets 120 more wrong
        worse = {5: 0, 2: 0, 1: 6}[axes["beam"]]
        better = 1 if axes["beam"] == 2 else 0
        return [1 - better if at in (0, 1) else worse if at % 2 else 0 for at in range(WORDS)]

    answer = answer_of(tuned(tmp_path, Simulated(effects, errors), tuning(keep=("wer<=+13",), axes=axes)))
    assert answer.answer.changes == {"beam": 2, "threads": 4}
    (narrow,) = [one for one in answer.candidates if one.changes == {"beam": 1}]
    assert narrow.fate == "refused" and narrow.change.is_better and "broken" in narrow.reason


def test_identical_text_passes_a_bound_that_the_data_cannot_prove(tmp_path):
    answer = answer_of(tuned(tmp_path, Simulated(), tuning(keep=("wer<=+0",))))
    assert answer.answer.changes == BEST


def test_a_configuration_that_fails_is_left_out_whatever_its_speed(tmp_path):
    place = Simulated(fails=lambda axes: "no room" if axes["batch"] == 4 else "")
    answer = answer_of(tuned(tmp_path, place))
    assert answer.answer.changes == {"threads": 4, "batch": 2}
    assert {one.reason for one in answer.candidates if one.fate == "refused"} == {"error: no room"}


def test_a_default_that_fails_ends_the_tuning_with_its_reason(tmp_path):
    answer = answer_of(tuned(tmp_path, Simulated(fails=lambda axes: "no model")))
    assert (answer.outcome, answer.answer.changes) == ("failed", {})
    assert "no model" in answer.reason


def test_a_limit_holds_by_its_upper_bound(tmp_path):
    place = Simulated(memory=lambda axes: axes["batch"] * 2**30)
    answer = answer_of(tuned(tmp_path, place, tuning(keep=("memory<=2GiB",))))
    assert answer.answer.changes == {"threads": 4, "batch": 2}
    assert any("memory<=2GiB is broken" in one.reason for one in answer.candidates if one.values["batch"] == 4)


def test_a_percentile_that_the_samples_cannot_bound_is_not_proven(tmp_path):
    keep = ("latency_p95<=10s",)
    few = answer_of(tuned(tmp_path / "few", Simulated(calls=4), tuning(keep=keep)))
    assert few.answer.changes == {}
    many = answer_of(tuned(tmp_path / "many", Simulated(calls=20), tuning(keep=keep)))
    assert many.answer.changes == BEST


def test_configurations_that_are_not_available_are_left_out_with_the_reason(tmp_path):
    asked = tuning()
    absent = [Skip(case=case, reason="too few cores") for case in cases_of(asked) if case.axes["threads"] == 4]
    answer = answer_of(tuned(tmp_path, Simulated(), asked, unavailable=absent))
    assert answer.answer.changes == {"batch": 4}
    assert {one.reason for one in answer.candidates if one.fate == "unavailable"} == {"too few cores"}


def test_one_round_is_measured_however_short_the_time_and_those_that_are_left_are_named(tmp_path):
    effects = {("threads", 4): -0.5, ("batch", 4): -0.005}
    axes = {"threads": (2, 4), "batch": (1, 4)}
    place = Simulated(effects, sd=0.1)
    state = tuned(tmp_path, place, tuning(axes=axes, within_s=1e-9))
    answer = answer_of(state)
    assert answer.by_stage["race"] == 4 and len(answer.close) == 3
    assert answer.answer.changes == {"threads": 4}


class Timed(Simulated):
    """The same, interrupted after so many measurements."""

    def __init__(self, stop_after):
        super().__init__()
        self.stop_after = stop_after

    def measure(self, case, report, extent="all", round_=0):
        if len(self.asked) == self.stop_after:
            raise KeyboardInterrupt
        return super().measure(case, report, extent, round_)


def test_a_tuning_that_was_stopped_goes_on_without_repeating_a_trial(tmp_path):
    whole = Simulated()
    expected = answer_of(tuned(tmp_path / "whole", whole))
    for stop in (0, 7, len(whole.asked) - 3):
        first, second = Timed(stop), Simulated()
        with pytest.raises(InterruptedRun):
            tuned(tmp_path / str(stop), first)
        found = answer_of(tuned(tmp_path / str(stop), second))
        assert first.asked + second.asked == whole.asked
        assert (found.answer.values, found.gain) == (expected.answer.values, expected.gain)


def test_a_tuning_that_was_killed_has_the_same_answer_and_repeats_no_finished_trial(tmp_path):
    whole = Simulated()
    expected = answer_of(tuned(tmp_path / "whole", whole))
    program = [sys.executable, str(Path(simulated_tuning.__file__)), str(tmp_path / "killed"), "30"]
    assert subprocess.run(program, check=False).returncode == -signal.SIGKILL
    kept = [record.key for record in RunDir(tmp_path / "killed").records()]
    assert kept == whole.asked[:30]
    found = answer_of(tuned(tmp_path / "killed", rest := Simulated()))
    assert rest.asked == whole.asked[30:]
    keys = Counter(record.key for record in RunDir(tmp_path / "killed").records())
    assert max(keys.values()) == 1
    assert (found.answer.values, found.gain) == (expected.answer.values, expected.gain)
