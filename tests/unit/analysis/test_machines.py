"""Cells that machines share, and their ratios."""

import pytest
from conftest import make_case, make_record

from speechmeter.analysis.conditions import shared_cells
from speechmeter.core import metrics
from speechmeter.core.types import Measurement


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
