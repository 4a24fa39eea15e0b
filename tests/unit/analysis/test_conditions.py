"""What differs between two cases, and cells that differ in the machine alone."""

import pytest
from conftest import make_case, make_record

from speechmeter.analysis.conditions import (
    batch_differences,
    case_differences,
    environment_differences,
    same_code,
    shared_cells,
)
from speechmeter.core import metrics
from speechmeter.core.types import BATCHES, Measurement


def test_code_that_is_compared_with_itself_is_noticed():
    code = {"digest": "a", "versions": {"torch": "2"}, "modules": {"mine": "working folder", "other": "elsewhere"}}
    facts = {"python": "3.11", "code": code}
    assert same_code(facts, facts) == "both import mine from the current directory"
    for changed in (
        {"python": "3.12"},
        {"code": {**code, "digest": "b"}},
        {"code": {**code, "versions": {"torch": "3"}}},
        {"code": None},
    ):
        assert same_code(facts, {**facts, **changed}) == ""


def test_differences_are_named():
    base, new = make_case(threads=1), make_case(threads=2, protocol={"samples": 7})
    assert case_differences(base, new, []) == ["threads: 1 in BASE, 2 in NEW", "samples: 3 in BASE, 7 in NEW"]
    assert case_differences(make_case(threads=1), make_case(threads=2), ["threads"]) == []
    machine, code = environment_differences({"cpu": "x", "git": "1"}, {"cpu": "y", "git": "2"})
    assert (len(machine), len(code)) == (1, 1)
    _, code = environment_differences(
        {"packages": {"torch": "1", "numpy": "2"}}, {"packages": {"torch": "3", "numpy": "2"}}
    )
    assert code == ["packages torch: '1' in BASE, '3' in NEW"]


def test_times_of_other_batches_are_no_times_to_compare():
    """One case id, measured by a version that made whole passes of a schedule and by one that keeps to its steps."""
    case = make_case(protocol={"mode": "schedule", "wait": 10, "warmup": 10, "active": 20, "repeat": 2})
    old, new = (
        [make_record(case, Measurement.of(metrics.LATENCY, [1.0] * count, notes={BATCHES: batches}))]
        for count, batches in ((160, 80), (40, 40))
    )
    assert batch_differences(old, new) == ["measured batches: 80 in BASE, 40 in NEW"]
    assert batch_differences(new, new) == []
    assert batch_differences(new, [make_record(case)]) == []


def rounds(time, **case):
    made = make_case(**case)
    return [
        make_record(made, Measurement.of(metrics.LATENCY, [time * scale]), round=n)
        for n, scale in enumerate((1.0, 1.02, 0.98))
    ]


def test_the_same_cell_is_matched_across_device_threads_and_cores():
    machines = {"a": [rounds(0.2)], "b": [rounds(0.01, device="cuda", threads=8, cores=8)]}
    (cell,) = shared_cells(machines)
    verdict = cell.verdicts(metrics.LATENCY)["b"]
    assert verdict.ratio == pytest.approx(0.05) and verdict.word == "FASTER" and not verdict.paired


@pytest.mark.parametrize("change", [{"batch": 4}, {"dtype": "float16"}, {"name": "other"}, {"protocol": {"seed": 1}}])
def test_cells_that_differ_otherwise_are_not_compared(change):
    assert shared_cells({"a": [rounds(0.2)], "b": [rounds(0.1, **change)]}) == []


def test_one_machine_shares_nothing():
    assert shared_cells({"a": [rounds(0.2), rounds(0.3, batch=2)]}) == []


def test_every_further_machine_is_held_against_the_first():
    machines = {"a": [rounds(0.2)], "b": [rounds(0.4)], "c": [rounds(0.8)]}
    ratios = {name: v.ratio for name, v in shared_cells(machines)[0].verdicts(metrics.LATENCY).items()}
    assert ratios == {"b": pytest.approx(2.0), "c": pytest.approx(4.0)}


def test_unlike_thread_counts_are_not_held_against_each_other_where_like_ones_are_there():
    machines = {"a": [rounds(4.0, threads=1), rounds(1.0, threads=4)], "b": [rounds(1.0, threads=4)]}
    (cell,) = shared_cells(machines)
    assert cell.case.axes["threads"] == 4
    assert cell.verdicts(metrics.LATENCY)["b"].ratio == pytest.approx(1.0)
