import pytest

from speechmeter.core.types import Batch
from speechmeter.engine.schedule import collect

BATCHES = [Batch(data=n, items=1) for n in range(3)]
SECOND = 10**9


def count(protocol, call_s=0.001, first_s=0.001):
    fed = []

    def sample(batch):
        fed.append(batch.data)
        return int(call_s * SECOND)

    found = collect(sample, BATCHES, protocol, int(first_s * SECOND))
    assert len(fed) == len(found.kept)
    return found, fed


CAPPED = {"mode": "capped", "warmup": 2, "samples": 10, "min_samples": 2, "budget_s": 20.0}


def test_quick_calls_get_all_samples_after_the_warm_up():
    found, _ = count(CAPPED)
    assert found.kept == (False,) * 2 + (True,) * 10
    assert found.stop_reason == "samples"


def test_a_heavy_call_gets_two_samples_after_the_first_and_no_warm_up():
    found, _ = count(CAPPED, call_s=35, first_s=36)
    assert found.kept == (True, True)
    assert found.stop_reason == "budget"


def test_the_budget_ends_the_samples():
    found, _ = count(CAPPED, call_s=4.5, first_s=4.5)
    assert found.kept == (False,) + (True,) * 5


def test_repeats_count_the_first_call_as_discarded():
    found, _ = count({"mode": "repeats", "discard": 1, "samples": 10}, call_s=100)
    assert found.kept == (True,) * 10
    found, _ = count({"mode": "repeats", "discard": 3, "samples": 2})
    assert found.kept == (False, False, True, True)


def test_the_classic_schedule():
    found, _ = count({"mode": "schedule", "wait": 10, "warmup": 10, "active": 20, "repeat": 2})
    assert found.kept == (False,) * 19 + (True,) * 20 + (False,) * 20 + (True,) * 20


def test_batches_are_fed_in_turn():
    _, fed = count({"mode": "repeats", "discard": 0, "samples": 5})
    assert fed == [0, 1, 2, 0, 1]


def test_an_unknown_mode_is_refused():
    with pytest.raises(ValueError, match="unknown protocol mode"):
        count({"mode": "guess"})
