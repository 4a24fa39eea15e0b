import math

import pytest

from speechmeter.core.axes import BOUNDARIES, CORE_AXES, Axis, inside_boundary

SECONDS = Axis(name="seconds", kind=float, default=5.0, help="", above=0)
BATCH = Axis(name="batch", kind=int, default=1, help="", minimum=1)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (0, "greater than 0, not 0"), (-1, "greater than 0, not -1"), (math.inf, "finite, not inf"),
        (math.nan, "finite, not nan"), ("1", "takes a number, not '1'"), (True, "takes a number, not True"),
        (None, "needs a value"), ([1], "takes a number, not [1]"),
    ],
)  # fmt: skip
def test_seconds_refuses(value, why):
    assert SECONDS.check(value).endswith(why)


@pytest.mark.parametrize("value", [1, 0.5, 32.0])
def test_seconds_takes(value):
    assert SECONDS.check(value) is None


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (0, "at least 1, not 0"), (-3, "at least 1, not -3"), (1.5, "takes a whole number, not 1.5"),
        ("four", "takes a whole number, not 'four'"), (True, "takes a whole number, not True"),
    ],
)  # fmt: skip
def test_batch_refuses(value, why):
    assert BATCH.check(value).endswith(why)


def test_every_default_is_on_its_own_axis():
    assert [axis.name for axis in CORE_AXES if axis.check(axis.default) is not None] == []


def test_each_boundary_widens_the_one_before():
    stages = ["model", "decode", "features", "copy", "load"]
    inside = [[stage for stage in stages if inside_boundary(stage, boundary)] for boundary in BOUNDARIES]
    assert inside == [stages[: n + 1] for n in range(5)]


def test_a_stage_that_no_boundary_names_is_always_inside():
    assert all(inside_boundary("backward", boundary) for boundary in BOUNDARIES)
