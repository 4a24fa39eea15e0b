"""Schedules: which steps pass, warm up, are recorded; and keywords, in our words and in those of others."""

import re
from pathlib import Path

import pytest

from speechmeter.api.profiling.options import ANALYST, PLAIN, Export, Schedule, TorchSchedule, options_from
from speechmeter.core.errors import InputError


def test_steps_go_through_the_cycle_and_then_rest():
    schedule = Schedule(wait=1, warmup=1, active=2, repeat=2)
    cycle = ["wait", "warmup", "active", "active"]
    assert [schedule.phase(step) for step in range(10)] == [*cycle, *cycle, "done", "done"]


def test_by_default_the_first_step_is_not_recorded_and_three_are():
    assert [Schedule().phase(step) for step in range(6)] == ["warmup", "active", "active", "active", "done", "done"]
    assert [step for step in range(6) if Schedule().ends(step)] == [3]


def test_first_steps_are_skipped_once():
    schedule = Schedule(skip_first=2, wait=1, warmup=0, active=1, repeat=2)
    assert [schedule.phase(step) for step in range(7)] == ["wait", "wait", "wait", "active", "wait", "active", "done"]
    assert [step for step in range(2, 6) if schedule.ends(step)] == [3, 5]


def test_a_schedule_of_torchs_gives_the_same_phases():
    torch = pytest.importorskip("torch", reason="needs torch")
    numbers = {"wait": 1, "warmup": 2, "active": 2, "repeat": 2, "skip_first": 3}
    ours, theirs = Schedule(**numbers), TorchSchedule(action=torch.profiler.schedule(**numbers))
    recorded = range(3 + 2 * 5)
    assert [theirs.phase(step) for step in recorded] == [ours.phase(step) for step in recorded]
    active = [step for step in recorded if ours.phase(step) == "active"]
    assert [theirs.ends(step) for step in active] == [ours.ends(step) for step in active]


def test_words_of_other_profilers_are_ours():
    given = {"profile_memory": True, "with_stack": True, "with_flops": True, "record_shapes": False, "dir_name": "here",
             "worker_name": "one", "use_gzip": False, "skip_first": 2, "with_modules": True}  # fmt: skip
    found = options_from(PLAIN, given)
    assert (found.memory, found.python_stacks, found.flops, found.shapes) == (True, True, True, False)
    assert found.export == Export(folder=Path("here"), worker_name="one", use_gzip=False)
    assert found.schedule == Schedule(skip_first=2)


def test_what_is_none_was_not_given():
    assert options_from(ANALYST, {"memory": None, "name": None}) == ANALYST
    assert options_from(ANALYST, {"profile_memory": False}).memory is False


def test_flops_have_a_second_step_of_warm_up_to_be_counted_in():
    assert options_from(PLAIN, {"flops": True}).schedule == Schedule(warmup=2)
    assert options_from(ANALYST, {"active": 2}).schedule == Schedule(active=2)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"warm": 1}, "profile has no option 'warm'; did you mean 'warmup'?"),
        ({"profile_memry": True}, "did you mean 'profile_memory'?"),
        ({"use_gz": True}, "did you mean 'use_gzip'?"),
        ({"memory": True, "profile_memory": False}, "memory and profile_memory are the same option of profile"),
        ({"schedule": 3}, "3 is not a schedule"),
        ({"schedule": Schedule(), "active": 2}, "schedule and active cannot be combined"),
        ({"on_trace_ready": "log"}, "'log' is not callable"),
        ({"modules": {"encoder": 3}}, "'encoder' is not a torch module"),
        ({"activities": ["CUDA"]}, "CPU is missing"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_way_out(given, said):
    with pytest.raises(InputError, match=re.escape(said)):
        options_from(PLAIN, given)


@pytest.mark.parametrize("wrong", [{"wait": -1}, {"warmup": -1}, {"skip_first": -1}, {"active": 0}, {"repeat": 0}])
def test_a_schedule_that_keeps_nothing_is_refused(wrong):
    with pytest.raises(InputError, match="records nothing"):
        Schedule(**wrong)
