"""The agreement meter tells what preparing found, and nothing of others."""

from types import SimpleNamespace

from speechmeter.core import metrics
from speechmeter.core.protocols import Prepared
from speechmeter.core.types import Measurement
from speechmeter.meters.agreement import AgreementMeter


def told(*found):
    return AgreementMeter().measure(SimpleNamespace(prepared=Prepared(stages=(), found=found)))


def test_deviations_are_passed_on_and_other_findings_are_not():
    deviation = Measurement.of(metrics.LOSS_DEVIATION, [1e-7], scope="label:random")
    assert told(deviation, Measurement.of(metrics.ITEMS, [3.0])) == [deviation]


def test_a_subject_without_an_oracle_gets_a_reason():
    (row,) = told()
    assert row.values == ()
    assert "no reference to compare it with" in row.unavailable
