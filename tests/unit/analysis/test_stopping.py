import math

import numpy as np
import pytest
from conftest import make_case, make_record
from scipy import stats

from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.stopping import Chosen, Rounds, choose
from speechmeter.core import metrics
from speechmeter.core.types import Measurement, Pilot

AUTO = Rounds(least=5, most=20, precision=0.05)
NOISY = (1, 1.3, 0.8, 1.1, 0.9)


def records(*medians, name="a", status="ok", pilot=None):
    return [
        make_record(make_case(name), Measurement.of(metrics.LATENCY, [value]), round=n, status=status, pilot=pilot)
        for n, value in enumerate(medians)
    ]


def failed(rounds, name="a"):
    return [make_record(make_case(name), round=n, status="oom") for n in rounds]


def chosen(found, rounds=AUTO):
    return choose({"a": found}, rounds).get("a")


def test_nothing_is_chosen_before_the_first_stage_is_complete():
    assert chosen(records(1, 1, 1, 1)) is None


def test_a_steady_case_gets_one_round_after_the_first_stage_which_says_so():
    found = chosen(records(1, 1, 1, 1, 1))
    assert (found.rounds, found.pilot.rounds) == (6, 5)


@pytest.mark.parametrize(("most", "rounds"), [(200, 113), (20, 20)])
def test_the_spread_of_the_first_stage_gives_the_number_of_rounds(most, rounds):
    found = chosen(records(*NOISY), Rounds(least=5, most=most, precision=0.05))
    spread = np.log(NOISY).std(ddof=1)
    needed = (stats.t.ppf(0.975, 4) * spread / math.log(1.05)) ** 2
    assert found.rounds == rounds == min(most, math.ceil(needed))
    assert (found.pilot.sd, found.pilot.degrees) == pytest.approx((spread, 4))


def test_later_rounds_do_not_change_what_was_chosen():
    first = chosen(records(*NOISY))
    assert chosen(records(*NOISY, *[1.0] * 5)) == first


def test_what_a_record_says_was_chosen_stays():
    pilot = Pilot(rounds=5, sd=0.01, degrees=30.0)
    found = [*records(*NOISY), *records(1, pilot=pilot)]
    assert chosen(found) == Chosen(rounds=6, pilot=pilot)


def test_many_cases_steady_the_spread_of_each():
    noise = np.random.default_rng(1)
    cases = {name: records(*np.exp(noise.normal(0, 0.05, 5)), name=name) for name in map(str, range(40))}
    found = choose(cases, AUTO)
    spreads = [one.pilot.sd for one in found.values()]
    own = [np.log([r.measurements[0].values[0] for r in group]).std(ddof=1) for group in cases.values()]
    assert min(one.pilot.degrees for one in found.values()) > 20
    assert np.std(spreads) < 0.3 * np.std(own)
    assert np.mean(spreads) == pytest.approx(0.05, rel=0.1)


def test_a_case_that_always_fails_is_left_alone():
    assert chosen(failed(range(5))) == Chosen(rounds=5)


def test_a_single_good_round_goes_on_without_a_spread():
    assert chosen([*records(1), *failed(range(1, 5))]) == Chosen(rounds=20)
    assert chosen([*records(1, 1), *failed(range(2, 5))]).rounds == 6


def test_a_case_without_latency_needs_no_more_than_the_least():
    assert chosen([make_record(make_case(), round=n) for n in range(5)]) == Chosen(rounds=5)


def test_a_fixed_number_is_not_adaptive():
    assert not Rounds(least=3, most=3).adaptive


def test_the_interval_after_a_first_stage_uses_its_spread():
    pilot = Pilot(rounds=5, sd=0.1, degrees=12.5)
    latency = Measurement.of(metrics.LATENCY, [1.0])
    later = [make_record(make_case("a"), latency, round=n, pilot=pilot) for n in range(5, 9)]
    found = [*records(*NOISY), *later]
    figure = estimate(found, metrics.LATENCY)
    half = stats.t.ppf(0.975, 12.5) * 0.1 / 3
    assert math.log(figure.high / figure.value) == pytest.approx(half)
    assert figure.value == pytest.approx(stats.gmean([*NOISY, 1, 1, 1, 1]))


def test_intervals_hold_wherever_the_rounds_end():
    """Two stages at 95 %: an interval that stops where it looks narrow holds in 80 to 90 % of such runs."""
    noise = np.random.default_rng(3)
    covered = 0
    for _ in range(400):
        values = np.exp(noise.normal(0, 0.1, 20))
        group = records(*values[:5])
        found = chosen(group)
        later = records(*values[: found.rounds])[5:]
        group += [make_record(r.case, *r.measurements, round=r.round, pilot=found.pilot) for r in later]
        figure = estimate(group, metrics.LATENCY)
        covered += figure.low <= 1 <= figure.high
    assert covered >= 0.92 * 400
