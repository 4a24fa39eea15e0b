"""`tune:` in a plan."""

import pytest

from speechmeter.core.errors import PlanError
from speechmeter.core.tuning import tuning_of
from speechmeter.plan.study import study_from_python

PLAN = {"models": ["log-mel"], "threads": [2, 1], "tune": {"goal": "rtfx"}}


def study(**changes):
    plan = {**PLAN, **changes}
    return study_from_python({key: value for key, value in plan.items() if value is not None})


def test_axes_that_are_not_given_get_the_values_that_make_sense_and_given_ones_stay():
    found = study(tune={"goal": "rtfx", "over": ["threads", "batch"]})
    assert found.plan.axes["threads"] == (2, 1) and found.plan.axes["batch"] == (1, 2, 4, 8)
    assert len(found.cells.cases) == 8 and found.plan.meters == ("latency", "outputs")
    first = found.cells.cases[0]
    assert (first.axes.threads, first.axes.batch) == (2, 1)


def test_the_resolved_plan_asks_for_the_same_tuning():
    found = study(tune={"goal": "memory", "over": "threads", "keep": "latency<=1s", "within": "20min"})
    again = study_from_python(found.plan.to_plain())
    assert {case.id for case in again.cells.cases} == {case.id for case in found.cells.cases}
    asked = tuning_of(found.plan.to_plain())
    assert asked == tuning_of(again.plan.to_plain())
    assert (asked.goal.name, asked.axes, asked.within_s, len(asked.limits)) == ("memory", {"threads": (2, 1)}, 1200, 1)


def test_a_score_that_is_bounded_is_taken():
    keep = {"goal": "rtfx", "keep": ["bleu>=-1"]}
    assert study(tune=keep).plan.quality.scores == ("wer", "cer", "bleu")
    assert study(tune=keep, quality={"scores": ["bleu"]}).plan.quality.scores == ("bleu",)


def test_a_plan_without_tuning_does_not_hold_the_key():
    assert "tune" not in study(tune=None, threads=1).plan.to_plain()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tune": {"goal": "joy"}}, "goal"),
        ({"tune": {"goal": "cost"}}, "needs a price"),
        ({"tune": {"goal": "rtfx", "keep": ["wer<=0.3"]}}, "relative to the default"),
        ({"tune": {"goal": "rtfx", "over": ["thread"]}}, "not an axis"),
        ({"tune": {"goal": "rtfx", "over": ["batch"]}}, "does not name it"),
        ({"tune": {"goal": "rtfx", "over": ["beam"]}, "threads": 1}, "nothing to tune"),
        ({"models": ["log-mel", "mockingjay"]}, "one model"),
        ({"models": [{"name": "a", "load": "log-mel", "axes": {"threads": [1]}}]}, "axes of the plan"),
        ({"find": "max-batch"}, "cannot be combined"),
        ({"triangle": True}, "cannot be combined"),
        ({"audio": ["noise", "sample"]}, "one input"),
    ],
)
def test_what_cannot_be_tuned_is_refused(changes, message):
    with pytest.raises(PlanError, match=message) as raised:
        study(**changes)
    assert raised.value.fix
