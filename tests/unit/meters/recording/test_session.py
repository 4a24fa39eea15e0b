"""One recording for all meters that need one: how often a profiler starts, what it records, of which calls."""

from __future__ import annotations

from itertools import permutations
from types import SimpleNamespace

import pytest
from conftest import make_case

torch = pytest.importorskip("torch", reason="the profiler is torch's")

from speechmeter.core import machine, metrics  # noqa: E402
from speechmeter.core.outputs import Keep, TraceOptions  # noqa: E402
from speechmeter.core.protocols import ORDINARY, Phase, Prepared  # noqa: E402
from speechmeter.core.types import Batch, Measurement, Stage  # noqa: E402
from speechmeter.engine.measure import measure  # noqa: E402
from speechmeter.launch.executors import measure_here  # noqa: E402
from speechmeter.meters.latency import LatencyMeter  # noqa: E402
from speechmeter.meters.modules import ModulesMeter  # noqa: E402
from speechmeter.meters.operators.meter import OperatorsMeter  # noqa: E402
from speechmeter.meters.recording import profiler  # noqa: E402
from speechmeter.meters.recording.recording import Needs  # noqa: E402
from speechmeter.meters.recording.session import recording_of, usual_count  # noqa: E402
from speechmeter.meters.split import SplitMeter  # noqa: E402
from speechmeter.meters.timeline import TimelineMeter  # noqa: E402
from speechmeter.meters.trace import TraceMeter  # noqa: E402

ALL = {
    "modules": ModulesMeter,
    "operators": OperatorsMeter,
    "split": SplitMeter,
    "timeline": TimelineMeter,
    "trace": TraceMeter,
}


class Subject:
    """A small net, and how often it was called."""

    def __init__(self, batches=1):
        self.net, self.calls, self.count = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()), 0, batches

    def prepare(self, case, device):
        def call(batch):
            self.calls += 1
            return self.net(batch.data)

        return Prepared(stages=(Stage(name="model", fn=call),), modules={"net": self.net})

    def batches(self, case):
        yield from (Batch(data=torch.zeros(4, 8), items=1) for _ in range(self.count))


@pytest.fixture
def starts(monkeypatch):
    """The options of every profiler that is started in this process, by whomever."""
    found = []
    true_start = torch.profiler.profile.__enter__

    def started(self):
        found.append({"memory": self.profile_memory, "shapes": self.record_shapes, "stacks": self.with_stack})
        return true_start(self)

    monkeypatch.setattr(torch.profiler.profile, "__enter__", started)
    return found


def measured(meters, subject=None, keep=None, **changes):
    subject = subject or Subject()
    case = make_case(meters=tuple(meters), **changes)
    outcome = measure(case, subject, subject, [ALL[name]() for name in meters], process="profiled", keep=keep)
    assert outcome.status == "ok", outcome.reason
    return {(m.metric, m.scope): m for m in outcome.measurements}


@pytest.mark.parametrize(
    "order", [tuple(ALL), tuple(reversed(ALL)), ("trace", "split", "modules", "timeline", "operators")]
)
def test_five_meters_read_one_recording_in_any_order(starts, tmp_path, monkeypatch, order):
    parsed = []
    true_read = profiler.events_of
    monkeypatch.setattr(profiler, "events_of", lambda finished: parsed.append(1) or true_read(finished))
    found = measured(order, keep=Keep(folder=tmp_path))
    assert len(starts) == 1
    assert len(parsed) == 1
    assert {"time_module.v1", "time_operator.v1", "time_split.v2", "memory_tensors_peak.v1", "trace_bytes.v1"} <= {
        metric for metric, m in ((key[0], m) for key, m in found.items()) if m.values
    }


@pytest.mark.parametrize(
    ("meters", "recorded"),
    [
        (("split",), {"memory": False, "shapes": False, "stacks": False}),
        (("modules", "operators", "split"), {"memory": False, "shapes": False, "stacks": False}),
        (("modules", "timeline"), {"memory": True, "shapes": False, "stacks": False}),
        (("split", "trace"), {"memory": True, "shapes": True, "stacks": False}),
    ],
)
def test_no_more_is_recorded_than_the_meters_need(starts, tmp_path, meters, recorded):
    measured(meters, keep=Keep(folder=tmp_path))
    assert starts[0] == recorded
    assert starts[1:] == ([{**recorded, "memory": True}] if "operators" in meters else [])  # one more call, for files


def test_pythons_stacks_are_recorded_when_they_are_asked_for(starts, tmp_path):
    measured(("trace",), keep=Keep(folder=tmp_path, trace=TraceOptions(python_stacks=True)))
    assert starts == [{"memory": True, "shapes": True, "stacks": True}]


def test_a_round_without_the_meters_that_ran_before_is_recorded_as_the_first_was(starts):
    subject = Subject()
    case = make_case(meters=("modules", "timeline", "trace"))
    keep = Keep(trace=TraceOptions(python_stacks=True)).later_round()
    outcome = measure(case, subject, subject, [ModulesMeter()], process="profiled", keep=keep)
    assert starts == [{"memory": True, "shapes": True, "stacks": True}]
    total = next(m for m in outcome.measurements if (m.metric, m.scope) == ("time_module.v1", "total"))
    assert total.notes["recorded"] == ["CPU", "modules", "allocations", "shapes", "Python stacks"]


def test_what_was_recorded_is_in_the_notes(tmp_path):
    found = measured(("modules", "operators", "timeline"), keep=Keep(folder=tmp_path))
    said = [m.notes["recorded"] for m in found.values() if "recorded" in m.notes]
    assert len(said) == 3
    assert said[0] == said[1] == said[2] == ["CPU", "modules", "allocations"]


def test_the_first_profiled_call_is_left_out_for_all_of_them():
    subject = Subject()
    found = measured(("modules", "split"), subject)
    assert subject.calls == 1 + 1 + 3  # the first call, the one that pays for the start, and those that count
    assert {len(m.values) for (metric, _), m in found.items() if metric.startswith("time_")} == {3}


@pytest.mark.parametrize(
    ("batches", "first_s", "calls"),
    [(1, 0.01, 3), (2, 0.01, 4), (3, 0.01, 3), (5, 0.01, 5), (40, 0.01, 5), (1, 9.0, 2), (4, 9.0, 2), (1, 60.0, 1)],
)
def test_the_number_of_calls_is_bounded(batches, first_s, calls):
    assert usual_count(SimpleNamespace(batches=[0] * batches, first_ns=round(first_s * 1e9))) == calls


def test_a_timeline_alone_needs_one_step_and_a_trace_as_many_as_are_asked_for(tmp_path):
    for meters, steps, calls in ((("timeline",), 1, 1), (("trace",), 2, 2), (("trace", "modules"), 4, 4)):
        subject = Subject()
        measured(meters, subject, Keep(folder=tmp_path, trace=TraceOptions(steps=steps)))
        assert subject.calls == 2 + calls, meters


def test_a_meter_that_needs_more_than_was_recorded_gets_another_recording(starts):
    session = SimpleNamespace(
        case=make_case(), batches=[0], all_batches=[0], first_ns=1, stages=(), shared={}, call=lambda batch: None,
        prepared=Prepared(stages=()), sync=lambda: None, progress=lambda text: None,
    )  # fmt: skip
    first = recording_of(session, Needs(means=True))
    assert recording_of(session, Needs()) is first
    assert recording_of(session, Needs(memory=True)).needs == Needs(memory=True)
    assert len(starts) == 2


SCHEDULE = {"mode": "schedule", "wait": 2, "warmup": 2, "active": 4, "repeat": 2}


def lengths(found):
    return {len(m.values) for (metric, _), m in found.items() if metric.startswith("time_") and m.values}


class Numbered(Subject):
    """The same, and which batches it was fed."""

    def __init__(self, batches):
        super().__init__(batches)
        self.fed = []

    def prepare(self, case, device):
        def call(batch):
            self.fed.append(int(batch.ids[0]))
            return self.net(batch.data)

        return Prepared(stages=(Stage(name="model", fn=call),), modules={"net": self.net})

    def batches(self, case):
        yield from (Batch(data=torch.zeros(4, 8), items=1, ids=(str(n),), audio_s=1.0) for n in range(self.count))


def test_the_active_steps_of_a_schedule_are_the_recorded_ones(starts):
    subject = Numbered(16)
    found = measured(("modules", "operators", "split"), subject, protocol=SCHEDULE)
    kept = [4, 5, 6, 7, 12, 13, 14, 15]
    # the first call, waiting and warm-up, one whose events are counted, one that pays for the start; the count of kinds
    assert subject.fed == [0, 1, 2, 3, 4, 4, *kept, 4]
    assert lengths(found) == {8}
    assert found["time_module.v1", "total"].notes["batches"] == 8
    assert len(starts) == 2


def test_a_schedule_over_one_batch_is_recorded_in_full(starts):
    found = measured(("modules",), Subject(), protocol=SCHEDULE)
    assert lengths(found) == {8}
    assert found["time_module.v1", "total"].notes["calls"] == 8


def test_steps_that_are_not_by_turns_say_which_batches_they_had():
    found = measured(("split", "modules"), Numbered(3), protocol={**SCHEDULE, "wait": 0, "warmup": 1, "active": 3})
    assert found["time_busy.v1", "busy:cpu"].notes["sampled"] == [0, 1, 2, 1, 2, 0]  # steps 1, 2, 3 and 5, 6, 7
    assert "batches" not in found["time_module.v1", "total"].notes


def test_a_schedule_that_would_fill_the_memory_is_shortened_with_a_note(monkeypatch):
    monkeypatch.setattr("speechmeter.meters.recording.session._MOST_EVENTS", 1)
    found = measured(("modules",), Numbered(16), protocol=SCHEDULE)
    assert lengths(found) == {3}
    said = found["time_module.v1", "total"].notes["shortened"]
    assert said.startswith("3 of 8 steps were recorded: a call has ")
    assert said.endswith(" events, and at most 1 are recorded")


def test_a_trace_alone_is_of_the_first_active_steps(tmp_path):
    subject = Numbered(16)
    measured(("trace",), subject, Keep(folder=tmp_path, trace=TraceOptions(steps=2)), protocol=SCHEDULE)
    assert subject.fed == [0, 1, 2, 3, 4, 4, 5]


class Timed:
    """Stands for whatever is timed: notes how many profilers had been started when it ran."""

    name, metrics, environ, ways, phase = "timed", (metrics.LATENCY,), {}, ORDINARY, Phase.TIMING

    def __init__(self, starts):
        self.starts, self.seen = starts, []

    def unavailable(self, case):
        return None

    def measure(self, session):
        self.seen.append(len(self.starts))
        return [Measurement.of(metrics.LATENCY, [1.0])]


@pytest.mark.parametrize("profilers", list(permutations(["operators", "split", "modules"], 2)))
def test_nothing_is_timed_after_a_profiler_whatever_the_order(starts, profilers):
    subject, timed = Subject(), Timed(starts)
    meters = [ALL[profilers[0]](), timed, ALL[profilers[1]]()]
    outcome = measure_here(make_case(meters=profilers), subject, subject, meters, "way out")
    assert outcome.status == "ok", outcome.reason
    assert timed.seen == [0]
    assert len(starts) == 1


def test_inline_runs_do_without_profilers_where_anything_is_timed(starts):
    subject = Subject()
    meters = [OperatorsMeter(), LatencyMeter()]
    case = make_case(meters=("operators", "latency"))
    outcome = measure_here(case, subject, subject, meters, "use --launcher subprocess", with_profilers=False)
    absent = next(m for m in outcome.measurements if m.metric == "time_operator.v1")
    assert absent.unavailable == "operators needs a separate process: use --launcher subprocess"
    assert starts == []
    alone = measure_here(case, subject, subject, meters[:1], "use --launcher subprocess", with_profilers=False)
    assert {m.metric for m in alone.measurements if m.values} >= {"time_operator.v1"}
    assert not [m for m in alone.measurements if m.metric == "latency_load.v1"]  # nothing is timed here


def test_who_times_in_a_process_that_profiled_before_is_warned(monkeypatch):
    monkeypatch.setattr(machine, "_ran", set())
    subject = Subject()
    case = make_case(meters=("latency", "modules"))
    first, second = (
        measure_here(case, subject, subject, [ModulesMeter(), LatencyMeter()], "way out") for _ in range(2)
    )
    assert not any("profiler ran" in warning for warning in first.warnings)
    assert any("profiler ran earlier in this process" in warning for warning in second.warnings)


def test_on_a_case_without_modules_the_other_meters_still_read():
    class Plain(Subject):
        def prepare(self, case, device):
            return Prepared(stages=(Stage(name="model", fn=lambda batch: batch.data @ batch.data.T),))

    found = measured(("modules", "operators", "split"), Plain())
    assert "no torch module" in found["time_module.v1", "total"].unavailable
    assert found["time_operator.v1", "total"].values
    assert found["time_split.v2", "split:cpu"].values
