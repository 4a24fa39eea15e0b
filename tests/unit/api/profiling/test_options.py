"""Schedules: which steps are let pass, warmed up, kept."""

import pytest

from speechmeter.api.profiling.options import Schedule
from speechmeter.core.errors import InputError


def test_steps_go_through_the_cycle_and_then_rest():
    schedule = Schedule(wait=1, warmup=1, active=2, repeat=2)
    cycle = ["wait", "warmup", "active", "active"]
    assert [schedule.phase(step) for step in range(10)] == [*cycle, *cycle, "done", "done"]


def test_by_default_the_first_three_steps_are_kept():
    assert [Schedule().phase(step) for step in range(5)] == ["active"] * 3 + ["done"] * 2


@pytest.mark.parametrize("wrong", [{"wait": -1}, {"warmup": -1}, {"active": 0}, {"repeat": 0}])
def test_a_schedule_that_keeps_nothing_is_refused(wrong):
    with pytest.raises(InputError, match="records nothing"):
        Schedule(**wrong)
