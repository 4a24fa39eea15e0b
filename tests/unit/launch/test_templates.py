"""Measuring processes that are forked from a template, and what is started anew instead."""

import errno
import os
import shutil
import signal
from contextlib import closing
from pathlib import Path
from time import monotonic, sleep

import numpy
import pytest
from conftest import make_case

from speechmeter.core import metrics, plugins
from speechmeter.core.outputs import Keep
from speechmeter.core.types import Limits, Spec
from speechmeter.launch import templates
from speechmeter.launch.executors import SubprocessExecutor
from speechmeter.launch.offline import offline
from speechmeter.launch.templates import kind_of

HERE = Path(__file__).parents[2]
IMPORTED = {
    "thread": "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n",
    "process": "import subprocess\nleft = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
    "open(__file__ + '.pid', 'a').write(f'{left.pid} ')\n",
    "closes": "import os\nfor fd in range(3):\n    os.close(fd)\n",
    "leaves": "raise SystemExit(3)\n",
    "network": "import socket\ntry:\n    socket.getaddrinfo('no-such-host.invalid', 80)\n"
    "except OSError as error:\n    open(__file__ + '.error', 'a').write(type(error).__name__)\n",
}
"""What the modules do that are imported early."""


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """The forkable subject, where this process and those that measure find it."""
    shutil.copy(HERE / "forkable_subject.py", tmp_path)
    for name, text in IMPORTED.items():
        (tmp_path / f"forkable_{name}.py").write_text(text)
    about = tmp_path / "forkable-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: forkable\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[speechmeter.subjects]\nforkable = forkable_subject:ForkableSubject\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    plugins._found.cache_clear()
    plugins._load.cache_clear()
    yield tmp_path
    plugins._found.cache_clear()
    plugins._load.cache_clear()


def case_of(source, **axes):
    return make_case(subject=Spec(plugin="forkable", name=source, source=source), **axes)


@pytest.fixture
def measured(planted):
    """`measured(processes, (case, round), …)`: the outcomes, one executor for all."""

    def call(processes, *turns):
        executor = SubprocessExecutor(Limits(time_s=120), Keep(folder=planted), processes)
        with closing(executor):
            found = [executor.measure(case, lambda phase: None, "all", round_) for case, round_ in turns]
        for outcome in found:
            assert outcome.status == "ok", outcome.reason
        return found

    return call


def of(outcome, metric, scope="total"):
    return next(m for m in outcome.measurements if (m.metric, m.scope) == (metric.id, scope))


def start_of(outcome, process="main"):
    return of(outcome, metrics.PHASE, f"process:{process}").notes["start"]


def facts(outcome):
    return dict(note.split(": ", 1) for note in of(outcome, metrics.ITEMS).notes["notes"] if ": " in note)


@pytest.mark.parametrize("how", ["auto", "exec", "fork"])
def test_a_cold_start_is_measured_in_new_processes_alone(how, measured):
    (outcome,) = measured(how, (case_of("numpy"), 0))
    cold = of(outcome, metrics.LATENCY_LOAD), of(outcome, metrics.LATENCY_FIRST)
    if how == "fork":
        assert start_of(outcome) == "forked"
        assert all("this one was forked" in m.unavailable for m in cold)
    else:
        assert start_of(outcome) == "new"
        assert all(m.values for m in cold)
    assert of(outcome, metrics.LATENCY).values


def test_by_default_what_is_timed_is_new_and_memory_is_read_in_forked_processes(measured):
    case = case_of("numpy", meters=("latency", "memory"))
    starts = [(start_of(one), start_of(one, "memory")) for one in measured("auto", (case, 0), (case, 1))]
    assert starts == [("new", "forked")] * 2


def test_every_round_has_a_template_of_its_own_which_ends_with_it(measured):
    case = case_of("numpy")
    first, second, third = (facts(one) for one in measured("fork", (case, 0), (case, 0), (case, 1)))
    assert first["parent"] == second["parent"] != third["parent"]
    assert not any(Path(f"/proc/{one['parent']}").exists() for one in (first, third))


def test_a_forked_process_is_like_a_new_one(measured):
    cores = len(os.sched_getaffinity(0))
    case = case_of("numpy", threads=2, cores=cores)
    forked, again, new = (facts(one) for one in [*measured("fork", (case, 0), (case, 0)), *measured("exec", (case, 0))])
    squares = numpy.arange(160_000, dtype=float).reshape(400, 400)
    truth = float((squares @ squares)[3, 5])
    for one in (forked, again, new):
        assert float(one["product"]) == pytest.approx(truth)  # by a BLAS whose threads ended before the fork
        assert one["main"] == "True"
    assert forked["drawn"] != again["drawn"]
    for fact in ("threads", "interrupt", "arguments"):
        assert forked[fact] == new[fact]
    assert int(forked["descriptors"]) <= int(new["descriptors"])


@pytest.mark.parametrize("source", ["thread", "process", "closes", "leaves", "absent", "new", "raises"])
def test_what_cannot_be_forked_is_started_anew(source, measured):
    assert [start_of(one) for one in measured("fork", (case_of(source), 0), (case_of(source), 1))] == ["new", "new"]


def test_what_an_import_left_running_ends_with_its_template(planted, measured):
    measured("fork", (case_of("process"), 0), (case_of("process"), 1))
    left = (planted / "forkable_process.py.pid").read_text().split()
    assert len(left) == 2  # one template a round
    deadline = monotonic() + 30  # whoever inherited them buries them
    while monotonic() < deadline and any(Path(f"/proc/{pid}").exists() for pid in left):
        sleep(0.02)
    assert not any(Path(f"/proc/{pid}").exists() for pid in left)


def test_no_import_of_an_offline_run_reaches_the_network(planted, measured):
    with offline(True):
        assert start_of(*measured("fork", (case_of("network"), 0))) == "forked"
    assert set((planted / "forkable_network.py.error").read_text().split("OfflineError")) == {""}


def test_a_kind_that_cannot_be_forked_is_tried_once_a_round_and_takes_no_place(measured, monkeypatch):
    tried = []

    class Counted(templates.Template):
        def __init__(self, kind, job):
            tried.append(kind)
            super().__init__(kind, job)

    monkeypatch.setattr(templates, "Template", Counted)
    monkeypatch.setattr(templates, "_MOST", 1)
    found = measured("fork", *[(case_of(source), 0) for source in ("absent", "numpy", "absent", "numpy")])
    assert [start_of(one) for one in found] == ["new", "forked", "new", "forked"]
    assert len(tried) == len(set(tried))


def test_where_no_template_can_be_started_a_process_is_started_anew(measured, monkeypatch):
    def refuse(kind, job):
        raise BlockingIOError(errno.EAGAIN, "no more processes")

    monkeypatch.setattr(templates, "Template", refuse)
    assert [start_of(one) for one in measured("fork", (case_of("numpy"), 0), (case_of("numpy"), 1))] == ["new", "new"]


def test_a_template_that_does_not_answer_is_given_up(planted, monkeypatch):
    monkeypatch.setattr(templates, "_FORK_S", 1.0)
    case = case_of("numpy")
    with closing(SubprocessExecutor(Limits(time_s=120), Keep(folder=planted), "fork")) as executor:
        stopped = int(facts(executor.measure(case, lambda phase: None))["parent"])
        os.kill(stopped, signal.SIGSTOP)
        found = executor.measure(case, lambda phase: None)
        assert not Path(f"/proc/{stopped}").exists()
    assert (found.status, start_of(found)) == ("ok", "new")


def test_no_process_is_forked_for_a_gpu_or_a_users_own_file(planted):
    assert kind_of(case_of("numpy"), "python", {}).modules == ("numpy",)
    assert kind_of(case_of("numpy", device="cuda"), "python", {}) is None
    assert kind_of(make_case(), "python", {}) is None


def test_a_case_survives_the_end_of_its_template(planted):
    """Killed while it waits, and while a process that was forked from it measures."""
    case = case_of("numpy")
    killed = []

    def kill_template(phase):
        if not killed and phase == "latency":
            killed.append(max(children()))
            os.kill(killed[0], signal.SIGKILL)

    def children():
        return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]

    with closing(SubprocessExecutor(Limits(time_s=120), Keep(folder=planted), "fork")) as executor:
        during = executor.measure(case, kill_template)
        after = executor.measure(case, lambda phase: None)
        os.kill(int(facts(after)["parent"]), signal.SIGKILL)
        again = executor.measure(case, lambda phase: None)
        last = executor.measure(case, lambda phase: None)
    assert [one.status for one in (during, after, again, last)] == ["ok"] * 4
    assert [start_of(one) for one in (during, after, again, last)] == ["new", "forked", "new", "forked"]
