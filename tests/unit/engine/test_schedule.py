"""How many calls are made, which of them are samples, and of which batch."""

import pytest

from speechmeter.core.protocol import protocol_from_json
from speechmeter.core.types import Batch
from speechmeter.engine.schedule import WINDOW, collect, is_steady

BATCHES = [Batch(data=0, items=1)]
SEVERAL = [Batch(data=n, items=1) for n in range(3)]
SECOND = 10**9


def count(protocol, call_s=0.001, first_s=0.001, batches=BATCHES):
    fed = []

    def sample(batch):
        fed.append(batch.data)
        return int(call_s * SECOND)

    found = collect(sample, batches, protocol_from_json(protocol), int(first_s * SECOND))
    assert len(fed) == len(found.kept)
    return found, fed


STEADY = {"mode": "steady", "warmup": 30, "samples": 10, "min_samples": 2, "budget_s": 20.0}


def test_steady_calls_are_warm_after_two_windows():
    found, _ = count(STEADY)
    assert found.kept == (False,) * 2 * WINDOW + (True,) * 10
    assert found.stop_reason == "samples, steady"


def test_a_slow_start_stays_in_the_warm_up():
    calls = iter([0.2, 0.19, 0.17, 0.14, 0.12, 0.11, 0.105, 0.101] + [0.1] * 100)
    found = collect(lambda batch: int(next(calls) * SECOND), BATCHES, protocol_from_json(STEADY), SECOND // 5)
    warm = found.kept.count(False)
    assert 2 * WINDOW <= warm <= 20
    assert found.stop_reason == "samples, steady"


def test_calls_that_never_settle_are_capped_and_it_says_so():
    growing = iter(0.001 * 1.2**n for n in range(100))
    found = collect(
        lambda batch: int(next(growing) * SECOND), BATCHES, protocol_from_json({**STEADY, "budget_s": 1e9}), 1
    )
    assert found.kept == (False,) * 30 + (True,) * 10
    assert found.stop_reason == "samples, warm-up capped"


def test_a_heavy_call_gets_two_samples_after_the_first_and_no_warm_up():
    found, _ = count(STEADY, call_s=35, first_s=36)
    assert found.kept == (True, True)
    assert found.stop_reason == "budget, warm-up capped"


def test_the_budget_ends_the_samples():
    found, _ = count(STEADY, call_s=4.5, first_s=4.5)
    assert found.kept == (False,) + (True,) * 5


@pytest.mark.parametrize(
    ("times", "steady"),
    [
        ([1.0] * 10, True),
        ([1.0] * 9, False),
        ([1.2] * 5 + [1.0] * 5, False),
        ([1.0, 1.3, 0.8, 1.1, 0.9] * 2, True),
        ([1.0] * 5 + [1.0, 1.5, 0.6, 1.4, 0.7], False),
    ],
)
def test_two_windows_are_compared_by_level_and_spread(times, steady):
    assert is_steady(times) is steady


def test_repeats_count_the_first_call_as_discarded():
    found, _ = count({"mode": "repeats", "discard": 1, "samples": 10}, call_s=100)
    assert found.kept == (True,) * 10
    found, _ = count({"mode": "repeats", "discard": 3, "samples": 2})
    assert found.kept == (False, False, True, True)


def test_the_classic_schedule():
    found, _ = count({"mode": "schedule", "wait": 10, "warmup": 10, "active": 20, "repeat": 2})
    assert found.kept == (False,) * 19 + (True,) * 20 + (False,) * 20 + (True,) * 20


CLASSIC = {"mode": "schedule", "wait": 10, "warmup": 10, "active": 20, "repeat": 2}


def test_the_classic_schedule_over_80_batches_keeps_steps_20_to_39_and_60_to_79():
    found, fed = count(CLASSIC, batches=[Batch(data=n, items=1) for n in range(80)])
    assert fed == list(range(1, 80))  # step 0 was the first call
    kept = [batch for batch, keep in zip(fed, found.kept, strict=True) if keep]
    assert kept == [*range(20, 40), *range(60, 80)]
    assert found.indices == ()  # each batch once, in turn


def test_steps_that_wait_use_up_batches_and_samples_say_which_batch_they_are_of():
    found, fed = count({"mode": "schedule", "wait": 1, "warmup": 1, "active": 3, "repeat": 2}, batches=SEVERAL)
    assert fed == [1, 2, 0, 1, 2, 0, 1, 2, 0]  # steps 1 to 9
    kept = [batch for batch, keep in zip(fed, found.kept, strict=True) if keep]
    assert kept == [2, 0, 1, 1, 2, 0]
    assert found.indices == (0, 1, 2, 2, 0, 1)  # among the measured ones: 2, 0, 1


def test_a_schedule_that_keeps_every_step_counts_no_first_call():
    found, fed = count({"mode": "schedule", "wait": 0, "warmup": 0, "active": 4, "repeat": 1}, batches=SEVERAL)
    assert (fed, found.kept) == ([0, 1, 2, 0], (True,) * 4)


def test_samples_are_whole_passes_over_the_batches_from_the_first_on():
    found, fed = count({"mode": "repeats", "discard": 3, "samples": 5}, batches=SEVERAL)
    assert fed == [0, 1, 0, 1, 2, 0, 1, 2]
    assert found.kept == (False,) * 2 + (True,) * 6
    found, fed = count({**STEADY, "samples": 4}, batches=SEVERAL)
    assert [batch for batch, keep in zip(fed, found.kept, strict=True) if keep] == [0, 1, 2] * 2


def test_a_pass_that_is_over_the_budget_is_finished():
    found, fed = count(STEADY, call_s=35, first_s=36, batches=SEVERAL)
    assert fed == [0, 1, 2]
    assert found.kept == (True,) * 3


def test_an_unknown_mode_is_refused():
    with pytest.raises(ValueError, match="unknown protocol mode"):
        count({"mode": "guess"})
