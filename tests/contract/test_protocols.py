"""The protocols carry what is to come without an edit in the engine: train steps, cascades, streams, other meters."""

from time import perf_counter, sleep
from types import MappingProxyType

import pytest
from conftest import make_case

from speechmeter.core.metrics import Metric
from speechmeter.core.protocols import ORDINARY, Fed, Installed, Meter, Phase, Prepared, Subject, Workload
from speechmeter.core.types import Batch, Measurement, Spec, Stage
from speechmeter.engine.measure import measure
from speechmeter.launch.executors import measure_here
from speechmeter.meters.latency import LatencyMeter

SLACK_S = 0.003


class Feed:
    axes = ()
    options = ()

    def __init__(self, **fields):
        self._fields = fields

    def check(self, case):
        return None

    def feeds(self, case):
        return Fed()

    def batches(self, case):
        yield Batch(**{"data": 1, "items": 1, **self._fields})


class Fixed:
    """A subject made of given stages."""

    summary = "fixed"
    axes = ()
    options = ()
    takes = ()
    runs_code = False

    def __init__(self, *stages, **fields):
        self.closed = 0
        self._stages, self._fields = stages, fields

    def installed(self):
        return Installed(version="fixed 1.0")

    def check(self, case):
        return None

    def unavailable(self, case):
        return None

    def prepare(self, case, device):
        return Prepared(stages=self._stages, close=self._close, **self._fields)

    def _close(self):
        self.closed += 1


def readings(subject, *meters, workload=None, **case):
    outcome = measure(make_case(**case), subject, workload or Feed(audio_s=2.0), meters or [LatencyMeter()])
    assert outcome.status == "ok", outcome.reason
    return {(m.metric, m.scope): m for m in outcome.measurements}


def test_fakes_satisfy_the_protocols():
    assert isinstance(Fixed(), Subject)
    assert isinstance(Feed(), Workload)
    assert isinstance(Reading(), Meter)


def test_a_train_step_of_five_stages():
    parameter, log = [10.0], []

    def stage(name, fn):
        return Stage(name=name, fn=lambda state: (log.append(name), fn(state))[1])

    def step(state):
        parameter[0] -= state["gradient"]
        return state

    subject = Fixed(
        stage("data", lambda batch: {"x": batch.data}),
        stage("forward", lambda state: {**state, "y": state["x"] * parameter[0]}),
        stage("loss", lambda state: {**state, "loss": state["y"] ** 2}),
        stage("backward", lambda state: {**state, "gradient": 0.1 * state["y"]}),
        stage("optimizer", step),
    )
    found = readings(subject, workload=Feed())
    names = ["data", "forward", "loss", "backward", "optimizer"]
    assert log[:5] == names
    rows = [found["latency.v1", f"stage:{name}"].values for name in names]
    assert found["latency.v1", "total"].values == pytest.approx([sum(call) for call in zip(*rows, strict=True)])
    assert parameter[0] < 10 * 0.9**3
    assert ("audio_seconds.v1", "total") not in found


def test_a_cascade_with_glue_outside_the_clock():
    truth = []

    def asr(batch):
        start = perf_counter()
        sleep(0.02)
        truth.append(perf_counter() - start)
        return "hello"

    def glue(text):
        sleep(0.05)
        return list(text)

    def tts(letters):
        assert letters == list("hello")
        return len(letters)

    subject = Fixed(Stage(name="asr", fn=asr), Stage(name="glue", fn=glue, clocked=False), Stage(name="tts", fn=tts))
    found = readings(subject)
    total = found["latency.v1", "total"].values
    assert total[-1] == pytest.approx(truth[-1], abs=SLACK_S)
    assert min(found["latency.v1", "stage:glue"].values) >= 0.05


def test_a_subject_that_returns_a_generator_is_drained_inside_the_clock():
    def stream(batch):
        yield from (sleep(0.01) for _ in range(3))

    found = readings(Fixed(Stage(name="model", fn=stream)))
    assert min(found["latency.v1", "total"].values) >= 0.03
    assert found["latency_first.v1", "total"].values[0] >= 0.03


class Reading:
    """A meter that a plug-in might bring."""

    name = "depth"
    metrics = (Metric(id="depth.v1", unit="1", direction="lower", title="depth", formula="stages in the chain"),)
    environ = MappingProxyType({"DEPTH": "1"})

    ways = ORDINARY

    def __init__(self, phase=Phase.TIMING, unavailable=None):
        self.phase, self._why = phase, unavailable

    def unavailable(self, case):
        return self._why

    def measure(self, session):
        outputs = session.call(session.batches[0])
        return [Measurement.of(self.metrics[0], [float(len(outputs))])]


def test_a_new_meter_reads_the_session():
    subject = Fixed(Stage(name="a", fn=str), Stage(name="b", fn=len))
    assert readings(subject, Reading())["depth.v1", "total"].values == (2.0,)


def test_an_unavailable_meter_gives_its_reason_and_no_value():
    found = readings(Fixed(Stage(name="a", fn=str)), LatencyMeter(), Reading(unavailable="no sensor"))
    assert found["depth.v1", "total"].unavailable == "no sensor"
    assert found["depth.v1", "total"].values == ()
    assert found["latency.v1", "total"].values


def test_a_meter_with_its_own_process_is_unavailable_inline():
    case, subject = make_case(), Fixed(Stage(name="a", fn=str))
    outcome = measure_here(case, subject, Feed(), [LatencyMeter(), Reading(phase=Phase.MEMORY)], "way out")
    found = {m.metric: m for m in outcome.measurements}
    assert "separate process: way out" in found["depth.v1"].unavailable


def test_a_failing_stage_keeps_what_was_read_before_it_and_closes():
    calls = []

    def fails_later(batch):
        calls.append(1)
        if len(calls) > 1:
            raise ValueError("worn out")

    subject = Fixed(Stage(name="model", fn=fails_later))
    outcome = measure(make_case(), subject, Feed(), [LatencyMeter()])
    assert outcome.status == "error"
    assert "worn out" in outcome.reason
    assert {m.metric for m in outcome.measurements} >= {"latency_load.v1", "latency_first.v1"}
    assert subject.closed == 1


@pytest.mark.parametrize(("source", "warned"), [("noise", True), ("sample", False)])
def test_text_from_noise_carries_a_warning(source, warned):
    workload = Spec(plugin="audio", name=source, source=source)
    subject = Fixed(Stage(name="model", fn=lambda batch: ["a text"]))
    outcome = measure(make_case(workload=workload), subject, Feed(), [LatencyMeter()])
    assert any("noise" in warning for warning in outcome.warnings) is warned


def test_text_of_a_pinned_length_carries_no_such_warning():
    subject = Fixed(Stage(name="model", fn=lambda batch: ["a text"], pinned_tokens=2))
    assert not any("noise" in warning for warning in measure(make_case(), subject, Feed(), [LatencyMeter()]).warnings)


def test_a_data_dependent_subject_on_noise_carries_a_warning():
    subject = Fixed(Stage(name="model", fn=lambda batch: None), data_dependent=True)
    assert measure(make_case(), subject, Feed(), [LatencyMeter()]).warnings


def test_what_a_batch_tells_of_itself_is_recorded_without_an_edit_in_the_engine():
    corners = Metric(id="corners.v1", unit="1", direction="neither", title="corners", formula="corners of a call")

    class Corners(Feed):
        def batches(self, case):
            for count in (3.0, 4.0):
                yield Batch(data=1, items=1, facts=(Measurement.of(corners, [count]),))

    outcome = measure(make_case(), Fixed(Stage(name="model", fn=lambda batch: None)), Corners(), [])
    assert outcome.status == "ok", outcome.reason
    assert [m.values for m in outcome.measurements if m.metric == corners.id] == [(3.0, 4.0)]
