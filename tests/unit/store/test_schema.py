"""The shape of a record: what tables and figures rely on is held when a line is read."""

import copy
import json

import pytest
from conftest import make_case, make_record

from speechmeter.analysis.modules import published_shares, rows_of
from speechmeter.core import metrics
from speechmeter.core.errors import StoreError
from speechmeter.core.types import Measurement
from speechmeter.store.schema import record_from_line


def line():
    notes = {"batches": 2, "notes": ["a"], "anything": {"else": [None]}}
    rows = {"inside": {"x": {"forward": [1.0, 2.0]}}, "forward": [1.0, 2.0], "calls": 23.0}
    made = (
        Measurement.of(metrics.LATENCY, [0.5, 0.6], notes=notes),
        Measurement.of(metrics.TIME_MODULE, [0.5, 0.6], scope="module:m", notes=rows),
    )
    return json.loads(json.dumps(make_record(make_case(), *made).to_json()))


def changed(path, value):
    data = copy.deepcopy(line())
    *above, last = path.split(".")
    holder = data
    for key in above:
        holder = holder[int(key) if key.isdigit() else key]
    holder[last] = value
    return data


def test_a_record_of_ours_is_read():
    assert record_from_line(line()).find("latency.v1").values == (0.5, 0.6)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("round", -1), ("round", 1.0), ("round", True), ("sequence", 2**70), ("status", "fine"), ("status", []),
        ("reason", None), ("host", 3), ("wall_s", "1"), ("wall_s", float("nan")), ("wall_s", 10**400),
        ("warnings", "one"), ("warnings", [1]), ("case", None), ("case.meters", [1]), ("case.axes", []),
        ("case.protocol", []), ("case.protocol.samples", "3"), ("case.protocol.mode", "repeats"),
        ("case.protocol.quality", {"scores": []}), ("case.protocol.find", "max-batch"),
        ("case.axes.seconds", "5"), ("case.axes.device", ["cpu"]), ("case.subject", "x"), ("case.subject.name", None),
        ("case.subject.options", []), ("measurements", [3]),
        ("measurements.0.values", []), ("measurements.0.values", "12"), ("measurements.0.values", [True]),
        ("measurements.0.values", [10**400]), ("measurements.0.values", [1e308, 1e308, float("inf")]),
        ("measurements.0.metric", 1), ("measurements.0.scope", None), ("measurements.0.notes", []),
        ("measurements.0.notes.batches", 0), ("measurements.0.notes.batches", 3), ("measurements.0.notes.notes", "a"),
        ("measurements.1.notes.inside", {"x": {"forward": [1.0]}}), ("measurements.1.notes.forward", [1.0]),
        ("measurements.0.notes.sampled", [0]), ("measurements.0.notes.sampled", [0, 0]),
        ("measurements.0.notes.sampled", [0, 2]), ("measurements.0.notes.sampled", [0.0, 1.0]),
        ("measurements.1.notes.labels", {}), ("measurements.1.notes.labels", [{"forward": [1.0, 2.0]}]),
        ("measurements.1.notes.labels", [{"in": ["x"], "forward": [1.0]}]),
        ("measurements.1.notes.labels", [{"in": ["x"], "module": 3}]),
    ],
)  # fmt: skip
def test_what_has_another_shape_is_refused_and_named(path, value):
    with pytest.raises(StoreError) as caught:
        record_from_line(changed(path, value))
    assert path.split(".")[0] in str(caught.value)
    assert len(str(caught.value)) < 200


def test_batches_out_of_turn_and_labels_around_a_row_are_read():
    data = changed("measurements.0.notes.sampled", [1, 0])
    data["measurements"][1]["notes"]["labels"] = [{"in": []}, {"in": ["x"], "module": "m", "forward": [1.0, 2.0]}]
    assert record_from_line(data).find("latency.v1").notes["sampled"] == [1, 0]


def test_a_count_is_one_number_for_a_module_and_may_be_several_elsewhere():
    data = line()
    data["measurements"][1] |= {
        "metric": metrics.FLOPS.id,
        "unit": metrics.FLOPS.unit,
        "notes": {"calls": [23.0, 23.0]},
    }
    assert record_from_line(data).measurements[1].notes["calls"] == [23.0, 23.0]
    with pytest.raises(StoreError, match="calls"):
        record_from_line(changed("measurements.1.notes.calls", [23.0, 23.0]))


def test_a_note_that_the_metric_does_not_declare_may_be_anything():
    data = changed("measurements.0.notes.inside", "not of a module")
    assert record_from_line(data).find("latency.v1").notes["inside"] == "not of a module"


def test_notes_of_a_meter_that_is_not_ours_and_options_of_a_model_may_hold_anything():
    data = changed("measurements.0.notes", {"calls": "many", "class": 3, "forward": "x"})
    data["measurements"][0]["metric"] = "loudness.v1"
    data["case"]["subject"]["options"] = {"rows": 3, "published": [1]}
    record = record_from_line(data)
    assert record.measurements[0].notes["class"] == 3
    assert (rows_of(record), published_shares(record)) == ({}, {})


def test_large_numbers_are_numbers():
    data = changed("measurements.0.values", [9e99, 9e98])
    assert record_from_line(data).find("latency.v1").values == (9e99, 9e98)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("measurements.0.values", [0.1, -0.1], "below 0"),
        ("measurements.0.unit", "bytes", "unit is 'bytes', but latency.v1 is in 's'"),
        ("measurements.0.scope", "", "an empty scope"),
        ("measurements.0.metric", "", "a measurement has an empty metric or an empty scope"),
        ("case.axes.batch", 10**40, "case.axes"),
    ],
)
def test_what_a_figure_cannot_be_made_of_is_refused_and_named(path, value, said):
    with pytest.raises(StoreError, match=said):
        record_from_line(changed(path, value))


def test_a_number_that_is_none_is_found_wherever_it_stands():
    for values in ([float("nan"), 1.0], [1.0, float("nan")], [1.0, float("nan"), 2.0]):
        with pytest.raises(StoreError, match=r"measurements\.0: values is \["):
            record_from_line(changed("measurements.0.values", values))
