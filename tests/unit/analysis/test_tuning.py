"""The steps of tuning on landscapes whose truth is known, without records."""

import math
import random
from itertools import product

import pytest

from speechmeter.analysis.racing import behind_best, first_stage, race, spread
from speechmeter.analysis.screening import is_worth, pairs, singles, size
from speechmeter.analysis.tuning import DEFAULT, FRESH, RACE, Budget, Problem, fresh_rounds, gain_of, next_step

DELTA = math.log1p(0.05)


def tuned(levels, truth, *, seed=0, sd=0.03, refused=(), wall_s=None, within_s=math.inf):
    """(the last step, rounds by cell) of a tuning with all that it asks for measured; `truth` is of a cell."""
    cells, logs, walls = tuple(product(*map(range, levels))), {}, {}
    while True:
        budget = Budget(within_s=within_s, walls=walls)
        held = {index: "guard" for index, cell in enumerate(cells) if cell in refused and index in logs}
        step = next_step(Problem(levels=levels, cells=cells, delta=DELTA, logs=logs, refused=held, budget=budget))
        if step.stage == "done":
            return step, logs, cells
        for one in step.wanted:
            common = random.Random(step.round).gauss(0, 0.1)
            own = random.Random(f"{seed} {one} {step.round}").gauss(0, sd)
            assert step.round not in logs.get(one, {})
            logs.setdefault(one, {})[step.round] = truth(cells[one]) + common + own
            if wall_s is not None:
                walls.setdefault(one, {})[step.round] = wall_s


def additive(*effects):
    return lambda cell: math.fsum(own[value] for own, value in zip(effects, cell, strict=True))


def test_the_first_stage_is_five_rounds_of_few_and_two_of_many():
    assert [first_stage(count) for count in (2, 5, 6, 8, 11, 21, 48)] == [5, 5, 5, 4, 3, 2, 2]


def test_the_state_of_a_round_is_no_part_of_the_spread():
    np = pytest.importorskip("numpy")
    noise = np.random.default_rng(1).normal(0, 0.03, (5, 40))
    state = np.linspace(0, 3, 5)[:, None]
    alone, shifted = (sum(one.value for one in spread(block)) / 40 for block in (noise, noise + state))
    assert shifted == pytest.approx(alone)
    assert alone == pytest.approx(0.03**2, rel=0.25)


def test_a_race_drops_what_is_clearly_behind_and_says_by_how_much():
    logs = {one: {at: 0.2 * one + 0.01 * ((one * at) % 3) for at in range(5)} for one in range(4)}
    found = race(logs, [0, 1, 2, 3], DELTA)
    assert found.decided and found.left == (0,)
    assert found.dropped[3].behind == pytest.approx(0.6, abs=0.02) and found.dropped[3].against == 0


def test_a_race_asks_for_the_round_that_someone_lacks():
    logs = {0: {RACE: 0.0}, 1: {}, 2: {RACE: 0.1}}
    found = race(logs, [0, 1, 2], DELTA, begin=RACE)
    assert (found.wanted, found.missing, found.decided) == (RACE, (1,), False)


def test_equal_figures_end_a_race_without_a_winner():
    logs = {one: dict.fromkeys(range(5), 1.0) for one in range(3)}
    assert race(logs, [0, 1, 2], DELTA).left == (0, 1, 2)


def test_a_candidate_far_behind_the_best_may_not_count_as_equal():
    logs = {one: {at: own + 0.001 * ((at + one) % 2) for at in range(6)} for one, own in enumerate((0.0, 0.01, 0.2))}
    variance = race(logs, [0, 1, 2], DELTA).variance
    behind = behind_best(logs, [0, 1, 2], range(6), variance)
    assert behind[1] <= DELTA < behind[2]


def test_a_screen_is_made_where_the_product_is_much_larger():
    assert is_worth((3, 2, 2, 2, 2)) and not is_worth((3, 2, 2))
    assert size((3, 2, 2)) == len(singles((3, 2, 2))) + 3 == 8
    assert pairs((3, 2), {(0, 0): 0.0, (1, 0): 0.3, (2, 0): 0.1, (0, 1): 0.0}) == [(2, 1)]


def test_six_axes_that_act_alone_need_a_fraction_of_their_product():
    truth = additive(*[(0.0, effect) for effect in (-0.3, 0.3, -0.3, 0.3, -0.3, 0.3)])
    step, logs, cells = tuned((2,) * 6, truth)
    assert cells[step.answer] == (1, 0, 1, 0, 1, 0)
    assert step.screen.kept == ((1,), (0,), (1,), (0,), (1,), (0,)) and not step.screen.together
    assert len(logs) <= 1 + 6 + 15 + 1 + 3 + 3


def test_a_pair_that_is_good_only_together_is_found():
    step, _, cells = tuned((2,) * 6, lambda cell: -0.4 if cell[1] and cell[4] else 0.0)
    assert cells[step.answer][1] and cells[step.answer][4]
    assert (1, 4) in step.screen.together


def test_a_refused_configuration_is_never_the_answer():
    truth = additive((0.0, -0.5), (0.0, -0.2))
    step, _, cells = tuned((2, 2), truth, refused={(1, 0), (1, 1)})
    assert cells[step.answer] == (0, 1)


def test_where_all_are_equal_the_answer_is_the_default():
    answers = [tuned((2, 2, 2), lambda cell: 0.0, seed=seed)[0].answer for seed in range(20)]
    assert answers.count(DEFAULT) >= 19


def test_the_gain_is_not_that_of_the_race():
    step, logs, _ = tuned((2, 2), additive((0.0, -0.2), (0.0, 0.1)))
    fresh = {at for at in logs[step.chosen] if at >= FRESH}
    assert step.gain.difference.rounds == len(fresh)
    assert step.gain == gain_of({one: {at: logs[one][at] for at in fresh} for one in (DEFAULT, step.chosen)},
                                DEFAULT, step.chosen, DELTA)  # fmt: skip


def test_when_the_time_ends_the_simplest_of_those_that_are_left_is_recommended_and_the_others_are_named():
    truth = additive((0.0, -0.5), (0.0, -0.005))
    step, logs, cells = tuned((2, 2), truth, sd=0.1, wall_s=60.0, within_s=60.0 * 50)
    assert cells[step.chosen] == (1, 0) and [cells[one] for one in step.close] == [(1, 1)]
    assert sum(map(len, logs.values())) <= 50
    assert step.answer == step.chosen


def test_rounds_of_the_default_beside_another_cell_are_not_compared_with_those_of_the_chosen_one():
    step, logs, cells = tuned((2, 2), additive((0.0, -0.5), (0.0, 0.1)))
    place = {one: {at: 100 * at + one for at in rounds} for one, rounds in logs.items()}
    fresh = [at for at in logs[DEFAULT] if at >= FRESH]
    problem = Problem(levels=(2, 2), cells=cells, delta=DELTA, logs=logs, order=place)
    assert next_step(problem).gain == step.gain
    place[DEFAULT] = {at: own - 50 * (at >= FRESH) for at, own in place[DEFAULT].items()}  # measured much earlier
    again = next_step(Problem(levels=(2, 2), cells=cells, delta=DELTA, logs=logs, order=place))
    assert (again.stage, again.round) == ("fresh", max(fresh) + 1)
    assert set(again.wanted) == {DEFAULT, step.chosen}


def test_fresh_rounds_are_five_to_twenty():
    variance = race({one: {at: 0.01 * ((at * (one + 1)) % 3) for at in range(5)} for one in range(3)}, [0, 1, 2], DELTA)
    assert fresh_rounds(None, DELTA) == 5
    assert 5 <= fresh_rounds(variance.variance, DELTA) <= 20
    assert fresh_rounds(variance.variance, DELTA / 100) == 20
