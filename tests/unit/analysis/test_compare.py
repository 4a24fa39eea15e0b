import math

import numpy as np
import pytest
from conftest import make_case, make_record
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from speechmeter.analysis.compare import Between, missing, verdict
from speechmeter.analysis.difference import Variance
from speechmeter.analysis.family import alone
from speechmeter.core import metrics
from speechmeter.core.types import Measurement, Pilot


def rounds(values, *, name="a", offset=0, step=2, metric=metrics.LATENCY, **fields):
    case = make_case(name)
    return [
        make_record(case, Measurement.of(metric, [float(v)]), round=n, sequence=n * step + offset, **fields)
        for n, v in enumerate(values)
    ]


def judge(base, new, effect=0.05, together=True, metric=metrics.LATENCY):
    return verdict(
        rounds(base, metric=metric), rounds(new, name="b", offset=1, metric=metric), metric, effect, together=together
    )


def noisy(truth, n, seed, shared=0.15, own=0.03):
    """Rounds of two cases: what both share (the machine's drift) and what each has of its own."""
    g = np.random.default_rng(seed)
    drift = g.normal(0, shared, n)
    return np.exp(drift + g.normal(0, own, n)), truth * np.exp(drift + g.normal(0, own, n))


def test_a_paired_ratio_is_t_on_log_ratios():
    base, new = noisy(1.2, 10, 0)
    found = judge(base, new)
    logs = np.log(new / base)
    low, high = stats.t.interval(0.95, 9, loc=logs.mean(), scale=stats.sem(logs))
    assert found.paired
    assert (found.ratio, found.low, found.high) == pytest.approx(tuple(np.exp([logs.mean(), low, high])))
    assert (found.word, found.regression) == ("SLOWER", True)


def test_rounds_of_two_lanes_are_not_paired_however_near_their_numbers_are():
    base, new = noisy(1.2, 10, 0)
    sides = rounds(base, lane="node:0"), rounds(new, name="b", offset=1, lane="node:1")
    assert not verdict(*sides, metrics.LATENCY, 0.05, together=True).paired
    together = rounds(base, lane="node:0"), rounds(new, name="b", offset=1, lane="node:0")
    assert verdict(*together, metrics.LATENCY, 0.05, together=True).paired


def test_an_unpaired_ratio_is_welchs():
    base, new = noisy(1.0, 12, 1)
    found = judge(base, new, together=False)
    reference = stats.ttest_ind(np.log(new), np.log(base), equal_var=False).confidence_interval(0.95)
    assert not found.paired
    assert (found.low, found.high) == pytest.approx((math.exp(reference.low), math.exp(reference.high)))


def test_pairing_sees_what_independent_rounds_cannot():
    base, new = noisy(1.10, 12, 2)
    assert judge(base, new).word == "SLOWER"
    assert judge(base, new, together=False).word == "CANNOT TELL"


def test_distant_measurements_of_one_run_are_not_paired():
    base, new = noisy(1.1, 8, 3)
    far = rounds(new, name="b", offset=50)
    assert not verdict(rounds(base), far, metrics.LATENCY, 0.05, together=True).paired


@pytest.mark.parametrize(
    ("new", "effect", "word", "regression"),
    [
        ([1.2, 1.21, 1.19, 1.2], 0.05, "SLOWER", True),
        ([0.8, 0.81, 0.79, 0.8], 0.05, "FASTER", False),
        ([1.0, 1.01, 0.99, 1.0], 0.05, "SAME", False),
        ([1.03, 1.031, 1.029, 1.03], 0.05, "SAME", False),
        ([1.2, 0.9, 1.1, 1.0], 0.05, "CANNOT TELL", False),
        ([1.06, 1.061, 1.059, 1.06], 0.10, "SAME", False),
    ],
)
def test_words(new, effect, word, regression):
    found = judge([1.0, 1.0, 1.0, 1.0], new, effect)
    assert (found.word, found.regression) == (word, regression)


def test_it_says_how_many_rounds_would_settle_it():
    found = judge([1.0] * 5, [1.10, 0.95, 1.15, 1.02, 1.2], 0.05)
    assert found.word == "CANNOT TELL"
    assert found.rounds_to_settle > 0
    assert f"about {found.rounds_to_settle} more rounds" in found.reason


def test_one_round_cannot_tell():
    found = judge([1.0], [2.0])
    assert found.word == "CANNOT TELL"
    assert "1 round" in found.reason
    assert found.ratio == 2


def test_higher_is_better_for_rtfx():
    def records(values, name, offset):
        case = make_case(name)
        return [
            make_record(
                case, Measurement.of(metrics.LATENCY, [v]), Measurement.of(metrics.AUDIO_SECONDS, [1.0]), round=n,
                sequence=2 * n + offset,
            )
            for n, v in enumerate(values)
        ]  # fmt: skip

    found = verdict(
        records([1.0] * 4, "a", 0), records([2.0, 2.01, 2.0, 2.0], "b", 1), metrics.RTFX, 0.05, together=True
    )
    assert (found.word, found.regression) == ("SLOWER", True)
    assert found.ratio == pytest.approx(0.5, rel=0.01)


@pytest.mark.parametrize("base", [[0.0] * 5, [0, 0, 0, 100e6, 101e6], [-1.0, 2.0, 3.0, 4.0, 5.0]])
@pytest.mark.parametrize("together", [True, False])
def test_a_round_of_nothing_has_no_ratio_and_no_advice(base, together):
    grown = [100e6, 101e6, 100e6, 100e6, 101e6]
    for sides in ((base, grown), (grown, base)):
        found = judge(*sides, metric=metrics.MEMORY_CPU_PEAK, together=together)
        assert (found.word, found.reason) == (
            "CANNOT TELL",
            "a round has a value of 0 or less, so no ratio can be computed",
        )
        assert (found.ratio, found.low, found.high, found.rounds_to_settle) == (None, None, None, None)


def test_memory_has_words_of_its_own():
    assert judge([100.0] * 4, [150, 151, 150, 150], metric=metrics.MEMORY_CPU_PEAK).word == "MORE"


@pytest.mark.parametrize(("new", "word"), [(68, "SAME"), (69, "MORE"), (67, "LESS")])
def test_parameters_are_compared_exactly(new, word):
    found = judge([68] * 2, [new] * 2, effect=0.5, metric=metrics.PARAMETERS)
    assert (found.word, found.regression) == (word, word == "MORE")


def test_a_case_that_fails_now_is_a_regression():
    broken = [make_record(make_case("b"), round=n, status="oom", reason="no memory") for n in range(3)]
    found = verdict(rounds([1, 1, 1]), broken, metrics.LATENCY, 0.05, together=False)
    assert (found.word, found.regression) == ("FAILED", True)
    assert "no memory" in found.reason


def test_exit_codes_of_cells_by_themselves():
    slower, same, open_ = judge([1] * 4, [2, 2, 2.01, 2]), judge([1] * 4, [1, 1, 1.001, 1]), judge([1], [1])
    gone = missing(rounds([1, 1]), metrics.LATENCY, 0.05)
    assert alone([same]).exit_code() == 0
    assert alone([same, open_, slower]).exit_code() == 1
    assert alone([same, open_]).exit_code() == 3
    assert alone([same, gone]).exit_code() == 3
    assert alone([]).exit_code() == 3


def with_failures(records, statuses):
    """The same rounds, some of which ended otherwise."""
    return [
        make_record(r.case, round=r.round, sequence=r.sequence, status=status, reason=f"{status} of the model")
        if status
        else r
        for r, status in zip(records, statuses, strict=True)
    ]


STEADY = [1.0, 1.01, 0.99, 1.0, 1.01, 0.99, 1.0, 1.0]
SOME = ["timeout", None] * 4


@pytest.mark.parametrize(
    ("before", "now", "word", "regression"),
    [
        (None, SOME, "FAILED", True),
        (SOME, None, "SAME", False),
        (SOME, SOME, "CANNOT TELL", False),
        (SOME, ["oom", "timeout"] + [None] * 6, "FAILED", True),
        (["timeout", "oom"] + [None] * 6, SOME, "CANNOT TELL", False),
    ],
)
def test_rounds_that_failed_are_part_of_the_verdict(before, now, word, regression):
    base, new = rounds(STEADY), rounds(STEADY, name="b", offset=1)
    base, new = (with_failures(side, some) if some else side for side, some in ((base, before), (new, now)))
    found = verdict(base, new, metrics.LATENCY, 0.05, together=True)
    assert (found.word, found.regression) == (word, regression)
    assert "of 8 rounds failed: " in found.reason


def test_two_kinds_of_error_are_two_kinds_of_failure():
    base, new = rounds(STEADY), rounds(STEADY, name="b", offset=1)
    reasons = "ValueError: no such file (a.py:3 in call)", "RuntimeError: stride (b.py:7 in call)"
    sides = [
        [*side[:-1], make_record(side[0].case, round=7, sequence=side[-1].sequence, status="error", reason=reason)]
        for side, reason in zip((base, new), reasons, strict=True)
    ]
    found = verdict(*sides, metrics.LATENCY, 0.05, together=True)
    assert found.word == "FAILED"
    assert "BASE never failed with error (RuntimeError)" in found.reason


def apart(truth, between, seed=0, own=0.01, n=6):
    g = np.random.default_rng(seed)
    sides = [list(np.exp(g.normal(0, own, n))), list(truth * np.exp(g.normal(0, own, n)))]
    base, new = (rounds(side, name=name) for side, name in zip(sides, "ab", strict=True))
    return verdict(base, new, metrics.LATENCY, 0.02, together=False, between=between)


def test_a_small_difference_between_two_runs_is_no_change_where_nothing_is_known_of_their_offset():
    assert apart(1.04, None).word == "SLOWER"  # the same without an offset between runs
    found = apart(1.04, Between())
    assert (found.word, found.regression) == ("CANNOT TELL", False)
    assert "two runs at different times can differ by 5% even if the code is the same" in found.reason
    assert apart(1.2, Between()).word == "SLOWER"
    assert apart(0.8, Between()).word == "FASTER"


def test_the_spread_of_earlier_runs_widens_the_interval():
    steady, wild = (Between(spread=Variance(value=sd**2, degrees=20)) for sd in (0.001, 0.05))
    assert apart(1.04, steady).word == "SLOWER"
    assert apart(1.04, wild).word == "CANNOT TELL"
    assert apart(1.04, wild).low < apart(1.04, steady).low


def test_rounds_after_a_first_stage_do_not_narrow_its_spread():
    first, later = [1.0, 1.2, 0.9, 1.1, 1.0], [1.0] * 20
    pilot = Pilot(rounds=5, sd=0.1, degrees=4.0)
    plain = judge([1.0] * 25, [*first, *later])
    base = rounds([1.0] * 25)
    new = [
        make_record(r.case, *r.measurements, round=r.round, sequence=r.sequence, pilot=pilot if r.round >= 5 else None)
        for r in rounds([*first, *later], name="b", offset=1)
    ]
    staged = verdict(base, new, metrics.LATENCY, 0.05, together=True)
    spread = np.log(first).std(ddof=1)
    assert (math.log(staged.high / staged.low) / 2) == pytest.approx(stats.t.ppf(0.975, 4) * spread / 5)
    assert staged.high - staged.low > plain.high - plain.low


def test_identical_cases_are_rarely_called_different_and_intervals_cover():
    false, covered = 0, 0
    for seed in range(1000):
        found = judge(*noisy(1.0, 8, seed), effect=0.02)
        false += found.word in ("SLOWER", "FASTER")
        covered += found.low <= 1 <= found.high
    assert false <= 70
    assert covered >= 930


@settings(max_examples=60)
@given(st.lists(st.tuples(st.floats(0.5, 2), st.floats(0.5, 2)), min_size=2, max_size=12))
def test_swapping_sides_inverts_the_ratio(pairs):
    base, new = zip(*pairs, strict=True)
    there, back = judge(base, new), judge(new, base)
    assert there.ratio * back.ratio == pytest.approx(1)
    opposite = {"SLOWER": "FASTER", "FASTER": "SLOWER"}
    assert back.word == opposite.get(there.word, there.word)
