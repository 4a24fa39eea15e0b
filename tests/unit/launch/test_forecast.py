"""Forecasts against simulated machines: the range that is printed holds the time that it then takes."""

import random
from dataclasses import replace

import pytest
from conftest import make_case

from speechmeter.analysis.stopping import Rounds
from speechmeter.api.durations import forecast_words, left_words
from speechmeter.core import metrics
from speechmeter.core.machine import host_name
from speechmeter.core.scope import PROCESS, Scope
from speechmeter.core.types import Limits, Measurement, Record
from speechmeter.launch.forecast import Basis, History, earlier, forecast
from speechmeter.launch.schedule import Left, Schedule, Sweep
from speechmeter.store.run_dir import RunWriter

LIMITS = Limits(time_s=600.0)


def case_of(seconds, name="fake", **changes):
    return make_case(name, meters=("latency", "memory"), **changes).with_axes(seconds=float(seconds))


class Machine:
    """Walls of measurements: a fixed part that is short where the process is forked, and one that grows with size."""

    def __init__(self, seed, *, fixed_s=4.0, growth=1.0, spread=0.1, cold=1.0):
        self.draw = random.Random(seed)
        self.fixed_s, self.growth, self.spread, self.cold = fixed_s, growth, spread, cold

    def record(self, case, round_=0, **changes):
        fixed_s = self.fixed_s if case.axes.seconds == self.cold else 0.2 * self.fixed_s
        size = case.axes.seconds * case.axes.batch
        rest_s = 0.5 * size**self.growth * (1.0 if round_ == 0 else 0.8)
        wall_s = (fixed_s + rest_s) * self.draw.lognormvariate(0, self.spread)
        share = fixed_s / (fixed_s + rest_s)
        notes = {"phases": ["load", "latency"], "start": "fork"}
        phases = [wall_s * share, wall_s * (1 - share)]
        row = Measurement.of(metrics.PHASE, phases, scope=Scope.of(PROCESS, "main"), notes=notes)
        made = Record(
            case=case, round=round_, sequence=0, status="ok", host=host_name(), measurements=(row,), wall_s=wall_s
        )
        return replace(made, **changes)


def history_of(records, limits=LIMITS):
    history = History(limits=limits)
    for record in records:
        history.add(record)
    return history


def ahead(cases, rounds):
    return Schedule(Sweep(cases=cases, rounds=Rounds(least=rounds, most=rounds)), []).left()


def holds(found, machine, cases, rounds):
    truth_s = sum(machine.record(case, round_).wall_s for case in cases for round_ in range(rounds))
    return found.least_s <= truth_s <= found.most_s


@pytest.mark.parametrize("earlier_rounds", [1, 2, 5])
def test_the_range_from_the_same_cases_holds_the_truth_and_is_narrow(earlier_rounds):
    cases = [case_of(seconds) for seconds in (1, 2, 4, 8)]
    for seed in range(100):
        machine = Machine(seed)
        seen = [machine.record(case, round_) for case in cases for round_ in range(earlier_rounds)]
        found = forecast(ahead(cases, 5), history_of(seen))
        assert holds(found, machine, cases, 5)
        assert found.most_s < (10 if earlier_rounds == 1 else 3.5) * found.least_s
        assert found.basis == {Basis.CASE: 20} and found.records == len(seen)


@pytest.mark.parametrize("growth", [0.0, 0.7, 1.0, 1.2])
@pytest.mark.parametrize("sizes", [(4, 8, 16), (0.25, 0.5)])
def test_the_range_from_other_sizes_holds_the_truth_however_the_time_grows(growth, sizes):
    cases = [case_of(seconds) for seconds in sizes]
    for seed in range(50):
        machine = Machine(seed, growth=growth)
        seen = [machine.record(case_of(seconds), round_) for seconds in (1, 2) for round_ in range(3)]
        found = forecast(ahead(cases, 3), history_of(seen))
        assert holds(found, machine, cases, 3)
        assert found.basis == {Basis.SIZE: 3 * len(sizes)} and found.unknown == 0


def test_the_range_from_other_settings_of_the_model_holds_the_truth():
    for seed in range(50):
        machine = Machine(seed)
        seen = [machine.record(case_of(1)), machine.record(case_of(4))]
        others = [case_of(2, threads=2), case_of(8, threads=2)]
        found = forecast(ahead(others, 2), history_of(seen))
        assert holds(found, machine, others, 2)
        assert found.basis == {Basis.MODEL: 4}


def test_records_that_do_not_say_how_processes_were_started_allow_for_forked_ones():
    before, now = Machine(1, fixed_s=4.0, cold=2.0), Machine(2, fixed_s=1.0, cold=None)
    cases = [case_of(2)]
    records = [before.record(cases[0], round_) for round_ in range(3)]
    old = [
        replace(one, measurements=tuple(replace(m, notes={"phases": m.notes["phases"]}) for m in one.measurements))
        for one in records
    ]
    assert holds(forecast(ahead(cases, 3), history_of(old)), now, cases, 3)
    assert not holds(forecast(ahead(cases, 3), history_of(records)), now, cases, 3)


def test_of_a_model_that_is_new_here_only_the_least_is_said():
    elsewhere = Machine(0).record(case_of(1), host="elsewhere")
    found = forecast(ahead([case_of(1)], 2), history_of([elsewhere]))
    assert (found.basis, found.records, found.unknown, found.limit_s) == ({}, 0, 2, 600.0)
    assert found.unknown_s == pytest.approx(2 * 2 * 0.2)  # a process for latency, one for memory, in each round
    words = forecast_words(found)
    assert words == "no similar case was measured on this machine before: at least 1 s together, at most 10 min each"
    assert left_words(found) == "at least 1 s left"


def test_what_is_known_and_what_is_new_are_said_apart():
    machine = Machine(0, spread=0.0)
    known, new = case_of(1), case_of(1, "new")
    found = forecast(ahead([known, new], 3), history_of([machine.record(known, n) for n in range(3)]))
    assert (found.total, found.unknown, found.basis) == (6, 3, {Basis.CASE: 3})
    assert forecast_words(found) == (
        "between 9 s and 20 s (based on 3 earlier records of this machine: 3 from the same case); "
        "3 more of models that were never measured on this machine: at least 1 s together, at most 10 min each"
    )
    assert left_words(found) == "between 9 s and 20 s left, not counting 3 measurements of new models"


def test_a_failure_is_expected_of_the_same_case_alone():
    machine, case, other = Machine(0, spread=0.0), case_of(1), case_of(2)
    history = history_of([machine.record(case, status="timeout", wall_s=600.0)])
    assert history.expected(case, "all").least_s == pytest.approx(600 / 1.5)
    assert history.expected(other, "all").basis is Basis.NOTHING


def test_nothing_takes_longer_than_its_limit_allows():
    machine, case = Machine(0, spread=0.0), case_of(1)
    history = history_of([machine.record(case)], Limits(time_s=2.0))
    assert history.expected(case_of(64), "all").most_s == 12.0  # and what ending a process may take


def test_rounds_that_precision_may_add_are_said_apart_and_end_with_the_limit_of_the_run():
    machine, case = Machine(0, spread=0.0), case_of(1)
    seen = [machine.record(case, round_) for round_ in range(3)]
    left = Schedule(Sweep(cases=[case], rounds=Rounds(least=5, most=20)), []).left()
    assert (len(left.certain), len(left.possible)) == (5, 15)
    free = forecast(left, history_of(seen))
    assert free.extra == 15 and free.extra_s > 15 * seen[1].wall_s
    bounded = forecast(left, history_of(seen, Limits(time_s=600.0, run_s=30.0)))
    assert bounded.extra_s < 30.0 < free.extra_s
    assert "; up to 15 more rounds if intervals are too wide, at most" in forecast_words(free)
    assert left_words(free).endswith(" left, then perhaps more rounds")


def test_the_newest_runs_of_a_folder_are_learned_from_and_broken_ones_left_out(tmp_path):
    machine, case = Machine(0), case_of(1)
    with RunWriter(tmp_path / "runs" / "one") as run:
        run.begin("models: []\n")
        run.append(machine.record(case))
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / "records.jsonl").write_text("no JSON\n")
    history = earlier([tmp_path / "runs", tmp_path / "absent", tmp_path / "runs"], LIMITS)
    basis, seen = history.behind(case)
    assert basis is Basis.CASE and len(seen) == 1


def test_an_estimate_is_of_what_is_left():
    cases = [case_of(1), case_of(2)]
    machine = Machine(0)
    done = [machine.record(cases[0], 0), machine.record(cases[1], 0), machine.record(cases[1], 1)]
    schedule = Schedule(Sweep(cases=cases, rounds=Rounds(least=2, most=2)), done)
    assert schedule.left() == Left(certain=[(cases[0], "repeat")], possible=[])
