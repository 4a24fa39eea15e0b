"""A search for the highest rate within an SLO, against a queue whose edge is known exactly."""

from dataclasses import replace

import pytest
from conftest import make_case
from live_rounds import PROTOCOL
from simulated_queue import LIMIT_S, RandomQueue, outcome, true_edge

from speechmeter.analysis.live.capacity import capacities
from speechmeter.core.errors import InterruptedRun
from speechmeter.core.finding import TARGETS
from speechmeter.core.slo import slo_of
from speechmeter.launch.capacity import Carrying
from speechmeter.launch.search import Search, run_search
from speechmeter.report.capacity import capacity, sentence
from speechmeter.store.run_dir import RunWriter

SLO = slo_of({"request_latency_p95_s": LIMIT_S}, first_round=1)


def searched(folder, queue, most=1000.0):
    line = make_case(pace="fast", chunk=1.0, streams=1, rate=4.0, protocol=PROTOCOL)
    tactic = Carrying(slo=SLO, confirming=6)
    search = Search(lines=[line], target=TARGETS["max-rate"], most=most, within=0.1, tactic=tactic)
    with RunWriter(folder / "run") as store:
        store.begin("")
        try:
            run_search(search, queue, store)
        finally:
            records = store.records()
    return records


def found_in(records):
    (found,) = capacities(records, SLO)
    return found


@pytest.mark.parametrize("seed", [1, 2])
def test_the_bracket_holds_the_true_edge(tmp_path, seed):
    found = found_in(searched(tmp_path, RandomQueue(seed)))
    assert found.passes.level <= true_edge() < found.fails.level
    assert len(found.passes.records) >= 6 <= len(found.fails.records)
    assert "request_latency_p95_s broke first" in sentence(found)


def test_rounds_that_chose_a_level_are_not_counted(tmp_path):
    found = found_in(searched(tmp_path, RandomQueue(1)))
    assert all(record.round >= 1 for record in (*found.passes.records, *found.fails.records))
    assert any(level.found.rounds == 0 and level.chosen_by is not None for level in found.levels)


def test_a_search_that_was_stopped_goes_on_without_repeating_a_round(tmp_path):
    whole = RandomQueue(1)
    searched(tmp_path / "whole", whole)
    first, second = RandomQueue(1, interrupt_after=9), RandomQueue(1)
    with pytest.raises(InterruptedRun):
        searched(tmp_path, first)
    searched(tmp_path, second)
    assert first.asked + second.asked == whole.asked


def test_a_client_that_is_the_bottleneck_makes_a_lower_bound(tmp_path):
    records = searched(tmp_path, RandomQueue(1, late_from=7.0))  # far below the edge of the system
    found = found_in(records)
    assert found.fails is None and found.passes.level < 7.0 < true_edge()
    assert "the client itself was late (client-bound), so this is a lower bound" in sentence(found)
    words = {row.cells[0].word for row in capacity(records, SLO)[0].rows}
    assert "client-bound" in words and "fails" not in words


class Refusing(RandomQueue):
    """A server that is gone above a rate, or was never there: every conversation fails at once."""

    serves_up_to = 0.0

    def measure(self, case, report, extent="all", round_=0):
        found = super().measure(case, report, extent, round_)
        if case.axes["rate"] <= self.serves_up_to:
            return found
        lost = outcome([], missing=range(self.requests))
        return replace(lost, status="error", reason="every conversation failed; the first: cannot connect")


def test_a_server_that_is_not_there_has_no_capacity(tmp_path):
    queue = Refusing(1)
    records = searched(tmp_path, queue)
    assert len(queue.asked) == 1  # nothing is learnt from lower rates
    found = found_in(records)
    assert found.fails is None
    assert sentence(found) == "no verdict: every conversation failed; the first: cannot connect"
    (table,) = capacity(records, SLO)
    assert {row.cells[0].word for row in table.rows} == {"error"}


def test_a_server_that_dies_under_load_fails_at_that_level(tmp_path):
    queue = Refusing(1)
    queue.serves_up_to = 6.0
    found = found_in(searched(tmp_path, queue))
    assert found.passes.level <= 6.0 < found.fails.level < true_edge()


def test_nothing_is_tried_above_the_limit_of_the_search(tmp_path):
    queue = RandomQueue(1)
    found = found_in(searched(tmp_path, queue, most=8.0))
    assert max(rate for rate, _ in queue.asked) == 8.0
    assert found.passes.level == 8.0 and sentence(found) == "carries 8 per second; no higher level is known to fail"
