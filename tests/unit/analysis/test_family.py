"""Many cells compared at once: corrections, the mean of all, and exit codes."""

import math

import numpy as np
import pytest
from conftest import make_case, make_record
from scipy import stats

from speechmeter.analysis.compare import judged, missing, verdict
from speechmeter.analysis.difference import Difference, Side, mean_of, paired
from speechmeter.analysis.family import _holm, alone, together
from speechmeter.core import metrics
from speechmeter.core.types import Measurement


def rounds(values, name, offset, batch, **fields):
    case = make_case(name, batch=batch)
    return [
        make_record(case, Measurement.of(metrics.LATENCY, [float(v)]), round=n, sequence=n * 2 + offset, **fields)
        for n, v in enumerate(values)
    ]


def grid(cells, count, *, changes=(), shared=0.0, sd=0.07, seed=0, metric=metrics.LATENCY, effect=0.05):
    """Verdicts on so many cells of so many rounds; `changes` are the true ratios of the first cells, 1 of the rest."""
    noise = np.random.default_rng(seed)
    common = noise.normal(0, 1, count)
    found = []
    for cell in range(cells):
        logs = sd * (math.sqrt(shared) * common + math.sqrt(1 - shared) * noise.normal(0, 1, count))
        truth = changes[cell] if cell < len(changes) else 1.0
        pairs = paired(dict.fromkeys(range(count), 0.0), dict(enumerate(math.log(truth) + logs)))
        found.append(judged(make_case("b", batch=cell + 1), metric, pairs, effect))
    return found


def exits(times, *args, **options):
    return [together(grid(*args, seed=seed, **options)).exit_code() for seed in range(times)]


def test_holm_is_scipys_idea_of_it():
    tails = [0.01, 0.04, 0.03, 0.005]
    assert _holm(tails) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert _holm([0.9, 0.8]) == [1.0, 1.0]


@pytest.mark.parametrize("shared", [0.0, 0.5])
def test_an_unchanged_grid_is_rarely_a_regression(shared):
    found = exits(60, 60, 5, shared=shared)
    assert found.count(1) <= 7  # 5 % are 3
    plain = [alone(grid(60, 5, shared=shared, seed=seed)).exit_code() for seed in range(20)]
    assert plain.count(1) >= 5


def test_an_unchanged_grid_is_settled_by_the_mean_of_its_cells():
    family = together(grid(60, 8))
    assert family.exit_code() == 0
    (mean,) = family.means
    assert (mean.word, mean.cells, mean.settled) == ("SAME", 60, True)
    unsettled = [v for v in family.verdicts if v.word == "CANNOT TELL"]
    assert unsettled
    assert all(0.05 <= v.shown < 0.2 for v in unsettled)


def test_one_slower_cell_among_many_is_found():
    assert exits(20, 60, 8, changes=[1.2]).count(1) >= 19
    family = together(grid(60, 8, changes=[1.2]))
    assert [v.case.axes["batch"] for v in family.verdicts if v.regression] == [1]


def test_what_only_a_correction_saves_reads_so_and_leaves_the_exit_code_alone():
    families = (together(grid(40, 6, seed=seed)) for seed in range(60))
    family = next(found for found in families if any(v.corrected for v in found.verdicts))
    saved = [v for v in family.verdicts if v.corrected]
    assert all(v.text in ("slower, not after correction", "faster, not after correction") for v in saved)
    assert not any(v.regression for v in saved)
    assert family.exit_code() == 0


def test_a_common_change_that_no_cell_shows_alone_is_a_regression_of_the_mean():
    family = together(grid(30, 5, changes=[1.07] * 30, sd=0.05, seed=3))
    (mean,) = family.means
    assert (mean.word, mean.regression) == ("SLOWER", True)
    assert family.exit_code() == 1


def test_an_improvement_of_all_is_no_open_question():
    family = together(grid(10, 6, changes=[0.7] * 10))
    assert family.exit_code() == 0
    assert {v.word for v in family.verdicts} == {"FASTER"}


def test_a_noisy_grid_cannot_tell():
    assert together(grid(4, 3, sd=0.3, seed=1)).exit_code() == 3


def test_a_single_cell_keeps_its_own_verdict():
    for changes in ([1.0], [1.2], [0.8]):
        raw = grid(1, 8, changes=changes)
        assert together(raw).verdicts == tuple(raw)
        assert together(raw).exit_code() == alone(raw).exit_code()


def test_a_missing_cell_cannot_tell_however_settled_the_others_are():
    raw = grid(20, 8)
    gone = missing(rounds([1.0] * 8, "a", 0, 99), metrics.LATENCY, 0.05)
    assert together(raw).exit_code() == 0
    assert together([*raw, gone]).exit_code() == 3


def test_a_count_that_grew_is_a_regression_without_statistics():
    sides = [
        [make_record(make_case(name), Measurement.of(metrics.PARAMETERS, [value]))]
        for name, value in (("a", 10.0), ("b", 11.0))
    ]
    counted = verdict(*sides, metrics.PARAMETERS, 0.05, together=True)
    assert together([*grid(10, 8), counted]).exit_code() == 1


def side_of(*values):
    return paired(dict.fromkeys(range(len(values)), 0.0), dict(enumerate(values)))


def test_the_mean_of_cells_is_taken_round_by_round():
    first, second = (0.1, 0.2, 0.0, 0.1), (0.3, 0.2, 0.1, 0.4)
    found = mean_of([side_of(*first), side_of(*second)])
    logs = np.mean([first, second], axis=0)
    low, high = stats.t.interval(0.95, 3, loc=logs.mean(), scale=stats.sem(logs))
    assert (found.mean, *found.bounds) == pytest.approx((logs.mean(), low, high))


def test_what_all_cells_share_does_not_average_out():
    alike = mean_of([side_of(0.1, -0.1, 0.2, 0.0)] * 50)
    assert alike.half_width == pytest.approx(side_of(0.1, -0.1, 0.2, 0.0).half_width)


def test_rounds_that_few_cells_have_weigh_little():
    short = [side_of(0.1, -0.1, 0.2, 0.0, 0.05) for _ in range(9)]
    longer = side_of(*([0.1, -0.1, 0.2, 0.0, 0.05] * 4))
    found = mean_of([*short, longer])
    assert found.sides[0].variance.degrees < 5
    assert isinstance(found, Difference)
    assert isinstance(found.sides[0], Side)
