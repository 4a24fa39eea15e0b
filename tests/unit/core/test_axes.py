import math

import pytest

from speechmeter.core.axes import BOUNDARIES, CORE_AXES, Axis, inside_boundary

SECONDS = Axis(name="seconds", kind=float, default=5.0, help="", above=0)
BATCH = Axis(name="batch", kind=int, default=1, help="", minimum=1)


@pytest.mark.parametrize("value", [0, -1, math.inf, math.nan, "1", True, None, [1]])
def test_seconds_refuses(value):
    assert SECONDS.check(value) is not None


@pytest.mark.parametrize("value", [1, 0.5, 32.0])
def test_seconds_takes(value):
    assert SECONDS.check(value) is None


@pytest.mark.parametrize("value", [0, -3, 1.5, "four", True])
def test_batch_refuses(value):
    assert BATCH.check(value) is not None


def test_every_default_is_on_its_own_axis():
    assert [axis.name for axis in CORE_AXES if axis.check(axis.default) is not None] == []


def test_each_boundary_widens_the_one_before():
    stages = ["model", "decode", "features", "copy", "load"]
    inside = [[stage for stage in stages if inside_boundary(stage, boundary)] for boundary in BOUNDARIES]
    assert inside == [stages[: n + 1] for n in range(5)]


def test_a_stage_that_no_boundary_names_is_always_inside():
    assert all(inside_boundary("backward", boundary) for boundary in BOUNDARIES)
