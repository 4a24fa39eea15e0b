"""A meter that fails loses its own figures, and the case stays ok; a subject that fails fails the case."""

from types import MappingProxyType

import pytest
from conftest import make_case

from speechmeter.core import metrics
from speechmeter.core.protocols import ORDINARY, Phase, Prepared
from speechmeter.core.types import Batch, Measurement, Stage
from speechmeter.engine.measure import measure
from speechmeter.meters.latency import LatencyMeter


class Subject:
    def __init__(self, broken_from=None):
        self._broken_from = broken_from
        self._calls = 0

    def prepare(self, case, device):
        return Prepared(stages=(Stage(name="model", fn=self._call),))

    def _call(self, batch):
        self._calls += 1
        if self._broken_from is not None and self._calls >= self._broken_from:
            raise ValueError("the model broke")

    def batches(self, case):
        yield Batch(data=None, items=1)


class Failing:
    """A meter of energy that raises."""

    name = "energy"
    metrics = (metrics.ENERGY_CPU, metrics.POWER_CPU)
    environ = MappingProxyType({})
    ways = ORDINARY
    phase = Phase.TIMING

    def __init__(self, error):
        self._error = error

    def unavailable(self, case):
        return None

    def measure(self, session):
        raise self._error


class Reading(Failing):
    """One that reads something after it."""

    name = "peaks"
    metrics = (metrics.PEAK_FLOPS,)

    def measure(self, session):
        return [Measurement.of(metrics.PEAK_FLOPS, [1.0])]


def outcome_of(subject, *meters):
    case = make_case(protocol={"mode": "repeats", "discard": 1, "samples": 3})
    return measure(case, subject, subject, meters)


@pytest.mark.parametrize("error", [RuntimeError("no sensor"), SystemExit(1), MemoryError("no sensor")])
def test_a_meter_that_fails_makes_its_own_figure_unavailable(error):
    outcome = outcome_of(Subject(), LatencyMeter(), Failing(error), Reading(None))
    assert (outcome.status, outcome.reason) == ("ok", "")
    found = {m.metric: m for m in outcome.measurements if m.scope == "total"}
    assert len(found["latency.v1"].values) == 3
    assert found["peak_flops.v1"].values == (1.0,)
    assert found["energy_cpu.v1"].values == ()
    assert found["energy_cpu.v1"].unavailable.startswith("the meter energy failed: ")


def test_a_model_that_breaks_while_it_is_timed_fails_the_case():
    outcome = outcome_of(Subject(broken_from=3), LatencyMeter(), Reading(None))
    assert outcome.status == "error"
    assert "the model broke" in outcome.reason


def test_a_device_that_is_lost_in_a_meter_fails_the_case():
    error = RuntimeError("CUDA error: an illegal memory access was encountered")
    assert outcome_of(Subject(), LatencyMeter(), Failing(error)).status == "crashed"


def test_control_c_passes_through_a_meter():
    with pytest.raises(KeyboardInterrupt):
        outcome_of(Subject(), Failing(KeyboardInterrupt()))
