"""Core axes of a case are attributes; those of plug-ins stay in the mapping; nothing changes in place."""

import json
import pickle

import pytest
from conftest import make_case

from speechmeter.core.axes import Axes
from speechmeter.core.types import Case


def test_core_axes_are_attributes_and_plug_ins_axes_are_items():
    axes = Axes({"device": "cuda:1", "threads": 4, "tf32": True, "batch": 8, "beam": 5})
    assert (axes.device, axes.threads, axes.tf32, axes.batch, axes["beam"]) == ("cuda:1", 4, True, 8, 5)
    assert {**axes} == dict(axes) == {"device": "cuda:1", "threads": 4, "tf32": True, "batch": 8, "beam": 5}


def test_a_case_that_does_not_say_claims_nothing():
    axes = Axes()
    assert (axes.device, axes.dtype, axes.boundary, axes.threads, axes.cores) == ("", "", "", 0, 0)
    assert (axes.compile, axes.seconds, axes.batch) == (False, None, None)


def test_axes_cannot_be_changed_in_place():
    axes = make_case().axes
    with pytest.raises(TypeError):
        axes["device"] = "cuda"
    with pytest.raises(AttributeError):
        axes.device = "cuda"


def test_a_changed_axis_makes_another_case_of_the_same_text():
    case = make_case()
    other = case.with_axes(batch=2)
    assert (other.axes.batch, case.axes.batch) == (2, 1)
    assert other.with_axes(batch=1) == case
    assert other.without_axis("batch") == case.without_axis("batch")
    assert Case.from_json(json.loads(json.dumps(case.to_json()))) == case == pickle.loads(pickle.dumps(case))
