"""Each kind of fault in each phase where it can occur: records stay readable, the run resumes, no process is left."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from fault_matrix import (
    IN_A_MODEL,
    IN_PREFLIGHT,
    OF_ALL,
    OF_THE_MODEL,
    PREFLIGHT,
    WRITING,
    Bench,
    drawn,
    exit_code,
    left_running,
    plant,
    plant_clock,
)

pytestmark = pytest.mark.campaign

FINE = ("fine@before", "fine@after")


@pytest.fixture(scope="module", params=["exec", "fork"])
def processes(request):
    """How measuring processes are started."""
    return request.param


@pytest.fixture(scope="module")
def seen_by_cell(pytestconfig, processes):
    """What was seen in each cell of the matrix, which is printed at the end."""
    words = {}
    yield words
    with pytestconfig.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print(f"\nprocesses: {processes}\n{drawn(words)}")


@pytest.fixture(scope="module")
def many(tmp_path_factory, processes):
    """All faults of models in one run, sound models between them; then the same run resumed without faults."""
    folder = tmp_path_factory.mktemp("many")
    plant(folder)
    bench = Bench(folder=folder, disk=folder, processes=processes)
    bench.plan([FINE[0], *(f"{kind}@{phase}" for kind, phase in IN_A_MODEL), FINE[1]])
    code = bench.run()
    first, statuses, left = bench.lines(), bench.statuses(), left_running(folder)
    resumed = bench.resume()
    yield {"code": code, "first": first, "statuses": statuses, "left": left, "resumed": resumed, "bench": bench}
    assert left_running(folder) == []


@pytest.mark.parametrize(("kind", "phase"), IN_A_MODEL)
def test_a_fault_of_a_model_is_a_record_of_its_case_alone(kind, phase, many, seen_by_cell):
    status = many["statuses"][f"{kind}@{phase}"]
    assert status == OF_THE_MODEL[kind], many["bench"].said
    record = next(r for r in map(json.loads, many["first"]) if r["case"]["subject"]["source"] == f"{kind}@{phase}")
    assert "\n" not in record["reason"]
    if status in ("timeout", "crashed") and kind != "cuda-sticky":
        assert phase.replace("latency pass", "latency").replace("warm-up", "latency").replace(
            "memory pass", "memory"
        ) in record["reason"]  # fmt: skip
    seen_by_cell[kind, phase] = status


def test_the_sound_models_among_them_are_measured_and_no_process_is_left(many):
    assert many["code"] == 0
    assert [many["statuses"][source] for source in FINE] == ["ok", "ok"]
    assert many["left"] == []


def test_the_run_of_many_faults_is_resumed_and_ends_well(many):
    bench = many["bench"]
    assert many["resumed"] == 0, bench.said
    assert bench.lines()[: len(many["first"])] == many["first"]
    assert set(bench.statuses().values()) == {"ok"}


@pytest.fixture
def bench(tmp_path, request, processes):
    """A folder with the faulty subject; with a small disk, or a clock that can be turned, where the fault needs it."""
    kind = request.node.callspec.params["kind"]
    plant(tmp_path)
    disk = tmp_path / "disk"
    disk.mkdir()
    if kind == "clock-jump":
        if shutil.which("cc") is None:
            pytest.skip("needs a C compiler, to turn the clock for one run alone")
        plant_clock(tmp_path)
    if kind in ("disk-full", "read-only"):
        if os.geteuid() != 0:
            pytest.skip("needs root, to mount a small disk")
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(disk)], check=True)
    yield Bench(folder=tmp_path, disk=disk, processes=processes)
    if os.path.ismount(disk):
        subprocess.run(["umount", str(disk)], check=True)


def interrupt_when_it_hangs(bench, output):
    """A plug-in that hangs in preflight is ended by its user."""
    bench.plan([*FINE[:1], "hang@preflight"])
    process = subprocess.Popen(
        [sys.executable, "-m", "speechmeter", "run", "plan.yaml", "--processes", bench.processes, "-o", str(output)],
        cwd=bench.folder,
        env={**os.environ, **bench.environ()},
        stderr=subprocess.PIPE,
    )
    while not (bench.folder / "hangs").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert b"interrupted" in process.communicate(timeout=120)[1]
    return process.returncode


@pytest.mark.parametrize(("kind", "phase"), [*IN_PREFLIGHT, *OF_ALL])
def test_a_fault_of_the_run_keeps_what_is_finished_and_is_resumed(kind, phase, bench, seen_by_cell):
    bench.plan([FINE[0], f"{kind}@{phase}", FINE[1]])
    began = time.monotonic()
    if (kind, phase) == ("hang", PREFLIGHT):
        code = interrupt_when_it_hangs(bench, bench.output)
        bench.plan([FINE[0], f"{kind}@{phase}", FINE[1]])
    else:
        code = bench.run(writing=kind if phase == WRITING else None)
        assert "Traceback" not in bench.said
    assert code == exit_code(kind, phase), bench.said
    assert left_running(bench.folder) == []
    first, elapsed_s = bench.lines(), time.monotonic() - began
    if phase == PREFLIGHT and code != 0:
        assert not bench.output.exists()
    elif phase != PREFLIGHT:
        assert bench.statuses()[FINE[0]] == "ok"
    seen_by_cell[kind, phase] = seen(kind, phase, code, bench)
    assert bench.resume() == 0, bench.said
    assert bench.lines()[: len(first)] == first
    assert bench.statuses() == dict.fromkeys([FINE[0], f"{kind}@{phase}", FINE[1]], "ok")
    assert left_running(bench.folder) == []
    if kind == "clock-jump":
        records = [json.loads(line) for line in first]
        assert all(0 < record["wall_s"] < elapsed_s for record in records)
        years = {record["started"][:4] for record in records}
        assert len(years) == (1 if phase == PREFLIGHT else 2)  # it did jump, and only labels show it


def seen(kind, phase, code, bench):
    """What the matrix says of a cell: the record's status where there is one, else how the run ended."""
    status = bench.statuses().get(f"{kind}@{phase}") if bench.output.exists() else None
    if code == 0 and status is not None:
        assert status == ("crashed" if kind == "guard-killed" else "ok")
        return status
    assert status is None or kind == "interrupt"
    return f"exit {code}" if code >= 0 else signal.Signals(-code).name
