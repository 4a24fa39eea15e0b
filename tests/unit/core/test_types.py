import json
import pickle

import pytest
from conftest import make_case, make_record

from speechmeter.core import metrics
from speechmeter.core.axes import Axes
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Case, Environment, Measurement, Record


def test_case_id_depends_on_every_part_of_the_case():
    base = make_case()
    others = [
        make_case(seconds=2.0),
        make_case(threads=2),
        make_case(meters=("latency", "memory")),
        make_case(protocol={"samples": 4}),
        make_case(name="other"),
    ]
    assert len({case.id for case in (base, *others)}) == 6
    assert make_case().id == base.id


def test_case_id_survives_json():
    case = make_case(seconds=2.5, batch=4)
    assert Case.from_json(json.loads(json.dumps(case.to_json()))).id == case.id


def test_record_survives_json():
    record = make_record(
        make_case(),
        Measurement.of(metrics.LATENCY, [0.1, 0.2], notes={"stop": "samples"}),
        Measurement.absent(metrics.PARAMETERS, "no module"),
        round=2,
        sequence=7,
        reason="why",
        warnings=("careful",),
        wall_s=1.5,
    )
    assert Record.from_json(json.loads(json.dumps(record.to_json()))) == record


def test_types_cannot_be_changed():
    with pytest.raises(AttributeError):
        make_case().subject = None


def test_fingerprint_ignores_state_and_follows_facts():
    first = Environment(facts={"cpu": "a"}, state={"load": 1})
    assert first.fingerprint == Environment(facts={"cpu": "a"}, state={"load": 2}).fingerprint
    assert first.fingerprint != Environment(facts={"cpu": "b"}).fingerprint


def test_one_metric_id_means_one_formula():
    with pytest.raises(ValueError, match="already defined"):
        metrics.register([Metric(id="latency.v1", unit="s", direction="lower", title="latency", formula="another")])


def test_a_bare_name_finds_the_newest_version():
    assert metrics.find("latency") is metrics.LATENCY
    assert metrics.find("rtf.v2") is metrics.RTF
    assert metrics.find("nonsense") is None


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
