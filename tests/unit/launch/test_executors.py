"""Which process each meter runs in, and which processes a later round repeats."""

from itertools import permutations
from typing import ClassVar

import pytest
from conftest import make_case

from speechmeter.core import metrics
from speechmeter.core.errors import CannotGoOnError
from speechmeter.core.outputs import Keep, TraceOptions
from speechmeter.core.types import Limits, Measurement
from speechmeter.engine.measure import Outcome
from speechmeter.engine.phases import processes_of
from speechmeter.launch import executors
from speechmeter.launch.executors import InlineExecutor, SubprocessExecutor, meters_of

ALL = ("flops", "memory", "parameters", "latency", "operators")


def planned(case, *, repeated=False):
    """(process, names of its meters) in the order they run."""
    processes = processes_of(case, meters_of(case, repeated=repeated))
    return [(process.name, tuple(meter.name for meter in process.meters)) for process in processes]


@pytest.mark.parametrize(
    ("meters", "expected"),
    [
        (("latency",), [("main", ("latency",))]),
        (("latency", "parameters"), [("main", ("latency", "parameters"))]),
        (("parameters",), [("shapes", ("parameters",))]),
        (("flops", "parameters"), [("shapes", ("parameters", "flops"))]),
        (("flops", "latency"), [("main", ("latency",)), ("shapes", ("flops",))]),
        (("memory", "latency"), [("main", ("latency",)), ("memory", ("memory",))]),
        (
            ALL,
            [
                ("main", ("latency",)),
                ("memory", ("memory",)),
                ("shapes", ("parameters", "flops")),
                ("profiled", ("operators",)),
            ],
        ),
    ],
)
def test_flops_and_memory_have_their_own_process_and_timing_comes_first(meters, expected):
    assert planned(make_case(meters=meters)) == expected


PROFILERS = ("operators", "split", "modules", "timeline", "trace")


@pytest.mark.parametrize("order", [(*PROFILERS, "latency"), ("latency", *PROFILERS), ("split", "latency", *PROFILERS)])
def test_profilers_share_a_process_in_which_nothing_is_timed_whatever_the_order(order):
    meters = tuple(dict.fromkeys(order))
    (main, timed), (profiled, others) = planned(make_case(meters=meters))
    assert (main, timed, profiled) == ("main", ("latency",), "profiled")
    assert set(others) == set(PROFILERS)


def test_on_a_gpu_memory_rides_with_the_timing():
    for meters in permutations(("latency", "memory", "energy")):
        assert planned(make_case(meters=meters, device="cuda")) == [("main", ("latency", "memory", "energy"))]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_order_in_which_meters_are_named_changes_neither_the_processes_nor_the_order_in_them(device):
    meters = ("latency", "memory", "flops", "parameters", "split", "modules", "operators")
    found = {tuple(planned(make_case(meters=order, device=device))) for order in permutations(meters)}
    memory = {"cpu": [("main", ("latency",)), ("memory", ("memory",))], "cuda": [("main", ("latency", "memory"))]}
    counted, profiled = ("shapes", ("parameters", "flops")), ("profiled", ("modules", "operators", "split"))
    assert found == {(*memory[device], counted, profiled)}


def test_of_meters_in_the_timed_process_latency_runs_first_in_whatever_order_they_are_named():
    meters = ("latency", "energy", "parameters", "peaks", "quality")
    found = {tuple(planned(make_case(meters=order))) for order in permutations(meters)}
    assert found == {(("main", meters),)}


@pytest.mark.parametrize(
    ("meters", "expected"),
    [
        (ALL, ["main", "memory", "profiled"]),
        (("latency", "flops"), ["main"]),
        (("latency", "parameters"), ["main"]),
        (("flops", "parameters"), []),
    ],
)
def test_what_was_counted_once_is_not_counted_again(meters, expected):
    assert [process for process, _ in planned(make_case(meters=meters), repeated=True)] == expected


def test_a_meter_that_counts_is_left_out_of_a_process_that_times():
    case = make_case(meters=("latency", "parameters", "quality"))
    assert planned(case) == [("main", ("latency", "parameters", "quality"))]
    assert planned(case, repeated=True) == [("main", ("latency",))]


@pytest.fixture
def started(monkeypatch):
    """Jobs that an executor hands to processes, none of which is started; `fails` names a process that goes wrong."""

    class Process:
        fails = None
        jobs: ClassVar[list] = []

        def __init__(self, job, environ, log, report, python, template=None, code=()):
            self.job = job
            self.jobs.append((job, environ))

        def run(self, time_s, limit_s):
            reading = Measurement.of(metrics.PHASE, [1.0], scope=f"process:{self.job.process}")
            if self.job.process == Process.fails:
                return Outcome(status="error", reason="it broke", measurements=(reading,))
            return Outcome(status="ok", measurements=(reading,))

    monkeypatch.setattr(executors, "MeasuringProcess", Process)
    return Process


def outcome_of(tmp_path, extent, **axes):
    executor = SubprocessExecutor(Limits(time_s=60), Keep(folder=tmp_path))
    return executor.measure(make_case(meters=ALL, **axes), lambda phase: None, extent)


@pytest.mark.parametrize(
    ("extent", "expected"),
    [
        ("all", ["main", "memory", "shapes", "profiled"]),
        ("repeat", ["main", "memory", "profiled"]),
        ("timing", ["main"]),
    ],
)
def test_a_round_starts_the_processes_it_needs_and_merges_what_they_read(extent, expected, started, tmp_path):
    outcome = outcome_of(tmp_path, extent)
    assert [job.process for job, _ in started.jobs] == expected
    assert [job.leads for job, _ in started.jobs] == [True] + [False] * (len(expected) - 1)
    assert [m.scope for m in outcome.measurements] == [f"process:{name}" for name in expected]


@pytest.mark.parametrize(("device", "expected"), [("cpu", ["memory"]), ("cuda", [])])
def test_only_a_memory_process_of_its_own_gets_its_allocator(device, expected, started, tmp_path, monkeypatch):
    monkeypatch.setenv("MALLOC_MMAP_THRESHOLD_", "1")  # as a user may have set it
    outcome_of(tmp_path, "all", device=device)
    assert [job.process for job, environ in started.jobs if "MALLOC_MMAP_THRESHOLD_" in environ] == expected


@pytest.mark.parametrize(("fails", "begun"), [("main", ["main"]), ("memory", ["main", "memory"])])
def test_a_process_in_which_the_model_fails_ends_the_round_and_is_named(fails, begun, started, tmp_path):
    started.fails = fails
    outcome = outcome_of(tmp_path, "all")
    assert [job.process for job, _ in started.jobs] == begun
    assert (outcome.status, outcome.reason) == ("error", "it broke" if fails == "main" else "memory pass: it broke")


@pytest.mark.parametrize(
    ("fails", "lost"), [("shapes", ["flops.v1", "parameters.v1"]), ("profiled", ["time_operator.v1"])]
)
def test_a_process_that_only_watches_loses_its_own_figures_when_it_fails(fails, lost, started, tmp_path):
    started.fails = fails
    outcome = outcome_of(tmp_path, "all")
    assert [job.process for job, _ in started.jobs] == ["main", "memory", "shapes", "profiled"]
    assert (outcome.status, outcome.reason) == ("ok", "")
    absent = {m.metric: m.unavailable for m in outcome.measurements if m.unavailable}
    assert absent == dict.fromkeys(lost, f"{fails} pass: error: it broke")


def test_a_case_that_is_only_watched_fails_with_its_process(started, tmp_path):
    started.fails = "shapes"
    executor = SubprocessExecutor(Limits(time_s=60), Keep(folder=tmp_path))
    outcome = executor.measure(make_case(meters=("flops", "parameters")), lambda phase: None)
    assert (outcome.status, outcome.reason) == ("error", "it broke")


@pytest.mark.parametrize("extent", ["all", "repeat"])
def test_all_rounds_know_how_a_trace_is_recorded_and_the_first_where_it_goes(extent, started, tmp_path):
    options = TraceOptions(steps=2, python_stacks=True)
    executor = SubprocessExecutor(Limits(time_s=60), Keep(folder=tmp_path, trace=options))
    executor.measure(make_case(meters=("modules", "trace")), lambda phase: None, extent)
    (keep,) = {job.keep for job, _ in started.jobs}
    assert keep.trace == options
    assert (keep.folder, keep.outputs) == ((tmp_path, True) if extent == "all" else (None, False))


def test_an_inline_run_ends_once_its_process_has_lost_the_device(monkeypatch, tmp_path):
    outcomes = iter([Outcome(status="error"), Outcome(status="crashed", reason="the device is lost")])
    monkeypatch.setattr(executors, "measure_here", lambda *args, **options: next(outcomes))
    executor = InlineExecutor(Keep(folder=tmp_path))
    assert [executor.measure(make_case(), print).status for _ in range(2)] == ["error", "crashed"]
    with pytest.raises(CannotGoOnError, match=r"the device is lost.*use `resume` with `launcher: subprocess`"):
        executor.measure(make_case(), print)
