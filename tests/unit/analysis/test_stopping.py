import pytest
from conftest import make_case, make_record

from speechmeter.analysis.stopping import Rounds, group_settled, settled
from speechmeter.core import metrics
from speechmeter.core.types import Measurement

AUTO = Rounds(least=5, most=20, precision=0.05)


def records(*medians, status="ok"):
    return [
        make_record(make_case(), Measurement.of(metrics.LATENCY, [value]), round=n, status=status)
        for n, value in enumerate(medians)
    ]


def test_at_least_five_however_steady():
    assert settled(records(1, 1, 1, 1), AUTO) is None
    assert settled(records(1, 1, 1, 1, 1), AUTO) == "precision"


def test_rounds_go_on_where_the_spread_is():
    assert settled(records(1, 1.3, 0.8, 1.1, 0.9), AUTO) is None


def test_the_cap_ends_it():
    assert settled(records(*([1, 2] * 10)), AUTO) == "max_rounds"


def test_a_case_that_always_fails_is_left_alone():
    failed = [make_record(make_case(), round=n, status="oom") for n in range(5)]
    assert settled(failed, AUTO) == "failed"


def test_a_single_good_round_has_no_precision_yet():
    failed = [make_record(make_case(), round=n, status="oom") for n in range(1, 5)]
    assert settled([*records(1), *failed], AUTO) is None
    assert settled([*records(1, 1), *failed], AUTO) == "precision"
    assert settled([*records(1), *failed * 5], AUTO) == "max_rounds"


def test_a_case_without_latency_needs_no_more_than_the_least():
    assert settled([make_record(make_case(), round=n) for n in range(5)], AUTO) == "precision"


@pytest.mark.parametrize(("noisy", "done"), [((1, 1.3, 0.8, 1.1, 0.9), False), ((1, 1, 1, 1, 1.001), True)])
def test_a_cell_goes_on_together(noisy, done):
    assert group_settled([records(1, 1, 1, 1, 1), records(*noisy)], AUTO) is done


def test_a_fixed_number_is_not_adaptive():
    fixed = Rounds(least=3, most=3)
    assert not fixed.adaptive
    assert settled(records(1, 5, 1), fixed) == "max_rounds"
