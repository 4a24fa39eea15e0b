"""The meter with back-ends whose truth is known, and with this machine's own: a reason or a figure, never a zero."""

import errno

import pytest
from conftest import make_case
from simulated_counters import SimulatedBackend, SimulatedKernel

from speechmeter.core import metrics
from speechmeter.core.protocols import Installed, Meter, Prepared
from speechmeter.core.types import Batch, Stage
from speechmeter.engine.measure import measure
from speechmeter.meters.hardware_flops.meter import KNOWN_FLOPS, HardwareFlopsMeter, check_known_work
from speechmeter.meters.hardware_flops.perf import INTEL, PerfBackend


class Worker:
    """Subject and workload: a call does as many operations as its batch says, ten times that in an unclocked stage."""

    axes = options = ()
    runs_code = False
    summary = "works"

    def __init__(self, *batches):
        self.done = 0
        self.calls = 0
        self._batches = batches

    def installed(self):
        return Installed()

    def check(self, case):
        return None

    def unavailable(self, case):
        return None

    def prepare(self, case, device):
        return Prepared(
            stages=(
                Stage(name="features", fn=self._features),
                Stage(name="glue", fn=self._glue, clocked=False),
                Stage(name="model", fn=self._model),
            )
        )

    def batches(self, case):
        for flops in self._batches:
            yield Batch(data=flops, items=1)

    def _features(self, batch):
        self.done += batch.data // 4
        return batch.data

    def _glue(self, flops):
        self.done += 10 * flops
        return flops

    def _model(self, flops):
        def stream():
            self.calls += 1
            for _ in range(3):
                self.done += flops // 4
                yield None

        return stream()


def trusting(counter):
    """Takes any counter for good."""


def figure(worker, *backends, check=trusting, **case):
    meter = HardwareFlopsMeter(backends=backends, check=check)
    outcome = measure(make_case(**case), worker, worker, [meter])
    assert outcome.status == "ok", outcome.reason
    return next(m for m in outcome.measurements if m.metric == "flops_hardware.v1")


def test_it_is_a_meter_of_one_inexact_metric():
    assert isinstance(HardwareFlopsMeter(), Meter)
    assert not metrics.FLOPS_HARDWARE.exact
    assert (metrics.FLOPS_HARDWARE.id, metrics.FLOPS_HARDWARE.unit) == ("flops_hardware.v1", "flop")


@pytest.mark.parametrize(
    ("batches", "values"),
    [((400,), (400, 400, 400)), ((400, 800), (400, 800, 400, 800)), ((4, 8, 12, 16), (4, 8, 12, 16))],
)
def test_there_is_a_value_for_every_call_over_clocked_stages_streams_drained(batches, values):
    worker = Worker(*batches)
    backend = SimulatedBackend(flops=lambda: worker.done)
    found = figure(worker, backend)
    assert found.values == values
    assert found.source == "simulated"
    assert found.notes == {}
    assert backend.closed == 2  # once for the question, once for the measurement


def test_events_that_took_turns_are_noted():
    worker = Worker(400)
    assert figure(worker, SimulatedBackend(flops=lambda: worker.done, share=0.8)).notes == {"counted_share": 0.8}


def test_the_first_backend_that_counts_is_used_and_the_reasons_of_all_are_given():
    worker = Worker(400)
    no, yes = SimulatedBackend(name="perf", reason="is forbidden"), SimulatedBackend("papi", lambda: worker.done)
    assert figure(worker, no, yes).source == "papi"
    why = HardwareFlopsMeter(backends=(no, SimulatedBackend(name="papi", reason="is absent"))).unavailable(make_case())
    assert why == "perf: is forbidden; papi: is absent"


@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_a_gpu_case_is_refused_without_opening_anything(device):
    meter = HardwareFlopsMeter(backends=())
    assert meter.unavailable(make_case(device=device)) == (
        "hardware counters count only the arithmetic of the processor, and this case runs on a GPU"
    )


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_refused(dtype):
    assert "single and double precision only" in HardwareFlopsMeter(backends=()).unavailable(make_case(dtype=dtype))


def test_a_call_without_arithmetic_is_unavailable_not_zero():
    worker = Worker(0)
    found = figure(worker, SimulatedBackend(flops=lambda: worker.done))
    assert found.values == ()
    assert "no single or double precision arithmetic" in found.unavailable


def test_a_counter_that_fails_midway_makes_the_figure_unavailable_and_nothing_else():
    worker = Worker(400)
    backend = SimulatedBackend(flops=lambda: worker.done, fails_after=2)
    found = figure(worker, backend)
    assert found.unavailable == "simulated: the kernel stopped the counter"
    assert backend.closed == 2


@pytest.mark.parametrize(("share_of_truth", "reason"), [(0, "reads 0 after"), (0.5, "after"), (2, "after")])
def test_a_counter_that_misses_known_work_is_broken_and_closed(share_of_truth, reason):
    counts = iter([0, share_of_truth * KNOWN_FLOPS])
    backend = SimulatedBackend(flops=lambda: next(counts))
    why = HardwareFlopsMeter(backends=(backend,)).unavailable(make_case())
    assert why.startswith("simulated: the counter")
    assert reason in why
    assert backend.closed == 1


def test_known_work_is_as_much_as_it_claims(monkeypatch):
    elements = []
    monkeypatch.setattr("numpy.multiply", lambda a, b, out: elements.append(a.size))
    counts = iter([0, KNOWN_FLOPS])
    check_known_work(SimulatedBackend(flops=lambda: next(counts)))
    assert sum(elements) == KNOWN_FLOPS


def test_a_dead_counter_of_the_kernel_is_found_out():
    kernel = SimulatedKernel(dead=True)
    backend = PerfBackend(kernel=kernel, events=lambda: INTEL, machine="Linux x86_64")
    why = HardwareFlopsMeter(backends=(backend,)).unavailable(make_case())
    assert why.startswith("perf: the counter opens but reads 0")
    assert not kernel.opened


def test_a_processor_without_events_is_refused_by_opening_not_by_a_list():
    backend = PerfBackend(kernel=SimulatedKernel(refuses=errno.ENOENT), events=lambda: INTEL, machine="Linux x86_64")
    why = HardwareFlopsMeter(backends=(backend,)).unavailable(make_case())
    assert why == "perf: no such event on this processor (a virtual machine hides counters)"


class Multiplies(Worker):
    """Two million multiplications by numpy in a call."""

    def prepare(self, case, device):
        import numpy as np

        factors = np.ones(1 << 21, np.float32)
        return Prepared(stages=(Stage(name="model", fn=lambda batch: factors * factors),))


def test_this_machine_gives_a_reason_for_each_backend_or_the_true_count():
    found = figure(Multiplies(0), *HardwareFlopsMeter()._backends, check=check_known_work)
    if found.unavailable is None:
        assert list(found.values) == pytest.approx([2**21] * 3, rel=0.2)
    else:
        assert found.values == ()
        assert "perf: " in found.unavailable
        assert "papi: " in found.unavailable


def test_errors_of_the_model_are_the_models_own():
    class Fails(Worker):
        def _model(self, flops):
            if self.calls:
                raise ValueError("the model is unhappy")
            return super()._model(flops)

    worker = Fails(4)
    outcome = measure(make_case(), worker, worker, [HardwareFlopsMeter(backends=(SimulatedBackend(),), check=trusting)])
    assert outcome.status == "error"
    assert "unhappy" in outcome.reason
