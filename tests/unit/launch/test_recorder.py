import pytest
from conftest import make_case

from speechmeter.analysis.stopping import Rounds
from speechmeter.core import metrics
from speechmeter.core.types import Environment, Measurement, Skip
from speechmeter.engine.measure import Outcome
from speechmeter.launch.recorder import run_sweep
from speechmeter.launch.schedule import Sweep
from speechmeter.report.lines import summary
from speechmeter.store import lines
from speechmeter.store.run_dir import RunWriter


class Given:
    """An executor that measures nothing: latency by case name and how often it was asked."""

    def __init__(self, times):
        self._times = times
        self.asked = []
        self.extents = []

    def measure(self, case, report, extent="all", round_=0):
        self.extents.append(extent)
        name = case.subject.name
        turn = sum(label.startswith(name) for label in self.asked)
        self.asked.append(f"{name}{case.axes['seconds']:g}")
        series = self._times.get(name, [1.0])
        return Outcome(status="ok", measurements=(Measurement.of(metrics.LATENCY, [series[turn % len(series)]]),))


def swept(tmp_path, cases, rounds, times=None, **fields):
    executor = Given(times or {})
    with RunWriter(tmp_path / "run") as store:
        store.begin("")
        run_sweep(Sweep(cases=cases, rounds=rounds, **fields), executor, store)
        measured = [r.round for r in store.records() if r.status == "ok"]
        assert executor.extents == ["all" if r == 0 else "repeat" if r < rounds.least else "timing" for r in measured]
        return executor.asked, store.records()


def test_cases_of_one_cell_are_side_by_side_and_every_other_round_runs_backwards(tmp_path):
    cases = [make_case(name, seconds=float(s)) for name in "AB" for s in (1, 2)]
    asked, records = swept(tmp_path, cases, Rounds(least=2, most=2))
    assert asked == ["A1", "B1", "A2", "B2", "B2", "A2", "B1", "A1"]
    assert [r.sequence for r in records] == list(range(8))
    assert [r.round for r in records] == [0] * 4 + [1] * 4


def test_adaptive_rounds_are_added_to_noisy_cells_alone(tmp_path):
    quiet, noisy = make_case("Q", seconds=1.0), make_case("N", seconds=2.0)
    rounds = Rounds(least=5, most=9, precision=0.05)
    asked, _ = swept(tmp_path, [quiet, noisy], rounds, {"N": [1.0, 2.0]})
    assert asked.count("Q1") == 6  # the round after the first stage says what was chosen
    assert asked.count("N2") == 9


def test_cases_beside_a_noisy_one_go_on_with_it(tmp_path):
    rounds = Rounds(least=5, most=7, precision=0.05)
    asked, _ = swept(tmp_path, [make_case("Q"), make_case("N")], rounds, {"N": [1.0, 2.0]})
    assert asked.count("Q1") == asked.count("N1") == 7


def test_the_budget_of_the_run_ends_adaptive_rounds_only(tmp_path):
    asked, _ = swept(tmp_path, [make_case("N")], Rounds(least=5, most=9), {"N": [1.0, 2.0]}, run_s=0.0)
    assert len(asked) == 5


def test_skipped_and_unavailable_cells_get_one_record_each(tmp_path):
    cases = [make_case("A"), make_case("B"), make_case("C")]
    left_out = {"skipped": [Skip(case=cases[0], reason="why")], "unavailable": [Skip(case=cases[1], reason="no")]}
    asked, records = swept(tmp_path, cases, Rounds(least=2, most=2), **left_out)
    assert asked == ["C1", "C1"]
    assert [(r.status, r.reason) for r in records[:2]] == [("skipped", "why"), ("unavailable", "no")]
    assert len(records) == 4


HERE = Environment(facts={"cpu": "x"})


class Broken:
    """An executor whose first case gives a measurement that no record holds."""

    def __init__(self, measurement):
        self._given = [measurement]

    def measure(self, case, report, extent="all", round_=0):
        fine = Measurement.of(metrics.LATENCY, [1.0])
        found = self._given.pop() if self._given else fine
        return Outcome(status="ok", measurements=(fine, found), environment=HERE)


@pytest.mark.parametrize(
    ("values", "notes", "told"),
    [
        ([], {}, "values is empty"),
        ([1e100], {}, "values is [1e+100]"),
        ([True], {}, "values is [True]"),
        ([1.0], {"notes": "text"}, "notes.notes is 'text'"),
        ([1.0], {"any": object()}, "JSON cannot store"),
        ([1.0], {"any": "x" * 2**16}, "the line is longer than"),
    ],
)
def test_what_no_record_holds_becomes_an_error_and_the_run_goes_on(tmp_path, monkeypatch, values, notes, told):
    monkeypatch.setattr(lines, "LARGEST_LINE", 2**15)
    executor = Broken(Measurement.of(metrics.LATENCY, values, notes=notes))
    events = []
    with RunWriter(tmp_path) as store:
        store.begin("")
        sweep = Sweep(cases=[make_case("A"), make_case("B")], rounds=Rounds(least=1, most=1))
        run_sweep(sweep, executor, store, events.append)
        broken, whole = store.records()
    assert (broken.case.subject.name, broken.round, broken.sequence, broken.status) == ("A", 0, 0, "error")
    assert told in broken.reason
    assert (broken.host, broken.environment) == (whole.host, whole.environment)
    assert broken.started and broken.environment and not broken.measurements
    assert [event.record.status for event in events if event.kind == "finished"] == ["error", "ok"]


@pytest.mark.parametrize("retry_failed", [False, True])
def test_a_case_that_can_be_had_by_now_is_measured_from_its_first_round_on(retry_failed, tmp_path):
    cases = [make_case("A"), make_case("B")]
    absent = [Skip(case=case, reason="no") for case in cases]
    swept(tmp_path, cases, Rounds(least=2, most=2), unavailable=absent)
    asked, records = swept(tmp_path, cases, Rounds(least=2, most=2), unavailable=absent[:1], retry_failed=retry_failed)
    assert asked == ["B1", "B1"]
    assert [(r.case.subject.name, r.round, r.status) for r in records] == [
        ("A", 0, "unavailable"),
        ("B", 0, "ok"),
        ("B", 1, "ok"),
    ]
    assert summary(records) == "1 unavailable, 2 ok"
