"""The order in which the meters of a case run follows from their phases, never from the order they were named in."""

import random
from types import MappingProxyType

import pytest
from conftest import make_case

from speechmeter.core import metrics, plugins
from speechmeter.core.protocols import ORDINARY, Phase, Prepared
from speechmeter.core.types import Batch, Measurement, Stage
from speechmeter.engine.measure import measure
from speechmeter.engine.phases import PROFILED, processes_of


class Subject:
    def prepare(self, case, device):
        return Prepared(stages=(Stage(name="model", fn=lambda batch: None),))

    def batches(self, case):
        yield Batch(data=None, items=1)


class Reading:
    environ = MappingProxyType({})
    ways = ORDINARY

    def __init__(self, name, phase, metric=metrics.PEAK_FLOPS):
        self.name, self.phase, self.metrics = name, phase, (metric,)

    def unavailable(self, case):
        return None

    def measure(self, session):
        return [Measurement.of(self.metrics[0], [1.0])]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_order_of_names_decides_neither_the_processes_nor_the_order_in_them(device):
    meters = [plugins.meter(name) for name in plugins.names(plugins.METERS)]
    case = make_case(device=device)
    expected = processes_of(case, meters)
    assert (expected[0].name, expected[-1].name) == ("main", PROFILED)
    assert expected[0].meters[0].name == "latency"
    shuffle = random.Random(0).shuffle
    for _ in range(20):
        shuffle(meters)
        assert processes_of(case, meters) == expected


def test_in_one_process_latency_comes_first_and_profilers_last_whatever_is_named_first():
    meters = [
        Reading("a profiler", Phase.PROFILE),
        Reading("count", Phase.COUNT, metrics.FLOPS),
        Reading("energy", Phase.TIMING, metrics.ENERGY_CPU),
        Reading("memory", Phase.MEMORY, metrics.MEMORY_CPU_PEAK),
        Reading("latency", Phase.TIMING, metrics.LATENCY),
    ]
    for named in (meters, meters[::-1]):
        outcome = measure(make_case(), Subject(), Subject(), named)
        (phase,) = [m for m in outcome.measurements if m.metric == metrics.PHASE.id]
        assert phase.notes["phases"][3:] == ["latency", "memory", "energy", "count", "a profiler"]
