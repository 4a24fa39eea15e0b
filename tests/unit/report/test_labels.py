"""Titles, columns and labels tell every case from every other."""

from conftest import make_case, make_record

from speechmeter.analysis.selecting import fits
from speechmeter.core import metrics
from speechmeter.core.types import Measurement, Spec
from speechmeter.report.grids import grids
from speechmeter.report.labels import case_labels, varying_axes
from speechmeter.report.losses import losses


def fed(sha="a1b2c3d4e5", name="set.tsv", **axes):
    case = make_case("m", workload=Spec(plugin="data", name=name, source=name, options={"sha256": sha}), **axes)
    return make_record(
        case.without_axis("seconds"),
        Measurement.of(metrics.LATENCY, [1.0]),
    )


def test_batches_by_another_rule_are_headed_by_it():
    records = [fed(batch=4, batch_seconds=None), fed(batch=1, batch_seconds=10.0), fed(batch=30, max_frames=9000)]
    (table,) = grids(records, metrics.LATENCY)
    assert table.columns == ("4", "batch_seconds 10", "max_frames 9000")
    assert "None" not in table.title


def test_a_list_that_changed_has_rows_of_its_own():
    records = [fed("aaaaaaaaaa"), fed("bbbbbbbbbb")]
    titles = [table.title for table in grids(records, metrics.LATENCY)]
    assert ["set.tsv aaaaaa" in titles[0], "set.tsv bbbbbb" in titles[1], len(titles)] == [True, True, 2]


def test_no_two_cases_have_one_label():
    records = [fed(batch=1), fed(batch=4), fed(batch=1, batch_seconds=5.0), fed("bbbbbbbbbb", batch=1)]
    labels = case_labels(records)
    assert len(set(labels.values())) == len(records)
    assert any(label.endswith("batch_seconds 5") for label in labels.values())


def test_cases_that_nothing_else_tells_apart_show_their_ids():
    plain, other = fed(), fed()
    other = make_record(
        type(other.case)(
            subject=plain.case.subject, workload=plain.case.workload, axes=plain.case.axes, meters=("flops",),
            protocol=plain.case.protocol,
        ),
    )  # fmt: skip
    labels = case_labels([plain, other])
    assert all(label.endswith(case_id[:6]) for case_id, label in labels.items())


def test_the_cell_of_a_failure_is_named_without_seconds_that_it_does_not_have():
    failed = make_record(fed(batch=4).case, status="error", reason="it broke")
    (table,) = grids([failed], metrics.LATENCY)
    assert "batch 4: error: it broke" in table.notes


def test_losses_in_batches_of_two_kinds_are_ranked_apart():
    records = [fed(part="loss", batch=30, max_frames=None), fed(part="loss", batch=30, max_frames=9000)]
    assert [table.title.rpartition(" · ")[2] for table in losses(records)] == ["batch 30", "max_frames 9000"]
    assert len(losses(records[:1])) == 1


def test_a_case_without_a_late_axis_has_its_default():
    """A model that was quantised beside the same one that was not: the second has no such axis in its record."""
    plain, quantised = make_case("hubert"), make_case("hubert", quantize="int8-dynamic")
    records = [make_record(case) for case in (plain, quantised, make_case("other", quantize="none"))]
    labels = case_labels(records)
    assert labels[plain.id] == "hubert · cpu · 1 s × 1"
    assert labels[quantised.id] == "hubert · cpu · quantize int8-dynamic · 1 s × 1"
    assert varying_axes([plain, records[2].case]) == []
    assert [fits(record, {"quantize": "none"}) for record in records] == [True, False, True]
