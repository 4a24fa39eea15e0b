"""Servers that are started: readiness, how they end, what they use, and that nothing of them is left."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from threading import Event, Thread

import pytest
from live_rounds import held
from live_servers import SAID, answered, http, tcp

from speechmeter.core import metrics, process_tree
from speechmeter.core.errors import SubjectError
from speechmeter.meters.server_use import ServerUse
from speechmeter.plan.study import study_from_file, study_from_python
from speechmeter.subjects.servers.process import ServerProcess, Start, version_of
from speechmeter.subjects.servers.secrets import Secret
from speechmeter.subjects.servers.wyoming import WyomingSubject

SERVER = Path(__file__).parents[3] / "wyoming_server.py"
ADDRESS = "tcp://127.0.0.1:{port}"
COMMAND = f"{sys.executable} {SERVER} {{port}}"


def started(command=COMMAND, *, url=ADDRESS, secret="", **given):
    return ServerProcess(Start(command=Start.command_of(command), **given), url, Secret(value=secret))


def python(code):
    return [sys.executable, "-c", code]


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def gone(pids, within_s=20.0):
    deadline = time.monotonic() + within_s
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(map(alive, pids))


def pids_in(file, within_s=20.0):
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if file.exists() and len(found := file.read_text().split()) == 2:
            return [int(pid) for pid in found]
        time.sleep(0.05)
    raise AssertionError("the server did not start")


@pytest.mark.parametrize("ready", ["port", "ready to serve"])
def test_it_is_ready_when_it_takes_connections_or_says_so(ready, tmp_path):
    server = started(f"{COMMAND} --pid {tmp_path / 'pid'}", ready=ready)
    try:
        assert "{port}" not in server.url and server.ended() is None
        pids = pids_in(tmp_path / "pid")
        assert set(pids) <= set(server.processes)
    finally:
        server.stop()
    assert gone(pids)
    assert server.ended() is not None


def test_it_is_ready_when_a_path_answers():
    code = """
import http.server, sys, time
began = time.time()
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        ready = self.path == "/health" and time.time() - began > 0.5
        self.send_response(200 if ready else 503); self.end_headers(); self.wfile.write(b"x")
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
    server = started([*python(code), "{port}"], url="ws://127.0.0.1:{port}/x", ready="/health")
    server.stop()


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import sys; print('bad key s3cret'); sys.exit(4)", "ended with exit code 4.*last line: bad key \\*\\*\\*"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "ended by signal 9"),
        ("import time; print('loading', flush=True); time.sleep(60)", "not ready after 2 s; its last line: loading"),
    ],
)
def test_a_server_that_is_never_ready_says_why(code, says):
    with pytest.raises(SubjectError, match=says):
        started(python(code), within_s=2, secret="s3cret")


def test_another_server_on_the_port_is_not_measured_instead():
    async def answer(head, body, writer):
        writer.write(answered(b"{}"))

    with http(answer) as url, pytest.raises(SubjectError, match="another server already listens"):
        started(url=url.replace("http", "tcp"))


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("", "`start` is empty"), ("no-such-program-here --x", "there is no program 'no-such-program-here'"),
        ("'open", "No closing quotation; close every quote"),
    ],
)  # fmt: skip
def test_commands_that_cannot_be(command, why):
    with pytest.raises(SubjectError, match=why):
        Start.command_of(command)


def test_a_server_that_takes_no_hint_is_killed(tmp_path):
    code = f"""
import os, signal, time, pathlib
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = os.fork()
if child:
    pathlib.Path({str(tmp_path / "pid")!r}).write_text(f"{{os.getpid()}} {{child}}")
    print("here", flush=True)
else:
    os.setsid()
time.sleep(60)
"""
    server = started(python(code), ready="here")
    pids = pids_in(tmp_path / "pid")
    server.stop()
    assert gone(pids)


def test_nothing_is_left_when_whoever_started_it_is_killed(tmp_path):
    code = f"""
import time
from speechmeter.subjects.servers.process import ServerProcess, Start
from speechmeter.subjects.servers.secrets import Secret
command = Start.command_of({f"{COMMAND} --pid {tmp_path / 'pid'}"!r})
server = ServerProcess(Start(command=command), {ADDRESS!r}, Secret())
print("up", flush=True)
time.sleep(60)
"""
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert owner.stdout.readline() == b"up\n"
        pids = pids_in(tmp_path / "pid")
        assert all(map(alive, pids))
    finally:
        owner.kill()
        owner.wait()
    assert gone(pids)


def prepared(**options):
    """A subject that is prepared as a case of a plan is."""
    plan = {"models": [{"name": "s", "load": f"wyoming:{ADDRESS}", **options}], "audio": "sample", "seconds": 1,
            "pace": "fast", "meters": ["memory"]}  # fmt: skip
    case = study_from_python(plan).cells.cases[0]
    subject = WyomingSubject()
    subject.check(case)
    return subject.prepare(case, "cpu")


def test_a_server_that_dies_under_load_is_the_error_of_those_after_it():
    found = prepared(start=f"{COMMAND} --die-after 2")
    try:
        exchanges = held(found.live, [SAID], pace="fast", silence_s=0.0, turns=4, timeout_s=10.0).exchanges
    finally:
        found.close()
    assert [one.error_kind for one in exchanges] == ["", "", "connection", "connection"]
    assert exchanges[2].error == "the server ended with exit code 3; its last line: out of memory on purpose"


def test_memory_and_cpu_time_are_those_of_the_whole_tree():
    code = """
import subprocess, sys, time
def burn():
    while time.process_time() < 0.5: pass
held = bytearray(48 << 20)
if sys.argv[1:]:
    burn(); print("burnt", flush=True); time.sleep(60)
child = subprocess.Popen([sys.executable, "-c", open("/proc/self/cmdline").read().split(chr(0))[2], "child"])
burn()
time.sleep(60)
"""
    server = started(python(code), ready="burnt")
    try:
        pids = server.processes
        assert len(pids) == 2
        assert process_tree.resident_bytes(pids) > 2 * (48 << 20)
        deadline = time.monotonic() + 20  # the other of the two may need longer
        while process_tree.cpu_seconds(pids) < 0.95 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert process_tree.cpu_seconds(pids) == pytest.approx(1.0, abs=0.15)
        use, done = ServerUse(lambda: server.processes), Event()
        watching = Thread(target=use.watch, args=(done,))
        watching.start()
        time.sleep(0.3)
        done.set()
        watching.join()
        memory, cores = use.measurements()
        assert memory.metric == metrics.MEMORY_SERVER.id and memory.values[0] > 2 * (48 << 20)
        assert 0 <= cores.values[0] < 1
    finally:
        server.stop()
    assert [one.unavailable for one in ServerUse(list).measurements()] == ["the server had ended"] * 2


def test_cores_used_by_a_server_are_its_cpu_time_over_the_wall_time(monkeypatch):
    moments, cpu = iter([10.0, 14.0]), iter([1.0, 3.0, 7.0])
    monkeypatch.setattr("speechmeter.meters.server_use.perf_counter", lambda: next(moments))
    monkeypatch.setattr("speechmeter.meters.server_use.cpu_seconds", lambda pids: next(cpu))
    monkeypatch.setattr("speechmeter.meters.server_use.resident_bytes", lambda pids: 100)
    use, done = ServerUse(list), Event()
    done.set()
    use.watch(done)
    assert [one.values[0] for one in use.measurements()] == [100.0, 1.5]


def test_what_a_server_says_it_is():
    async def answer(head, body, writer):
        path = head.split()[1]
        said = {"/openapi.json": b'{"info": {"title": "My\\u001b Server", "version": "1.2"}}'}
        writer.write(answered(said.get(path, b"no"), status="200 OK" if path in said else "404 Not Found"))

    with http(answer) as url:
        assert version_of(url) == "My Server 1.2"
        assert version_of(url.replace("http", "ws")) == "My Server 1.2"
    assert version_of(url) == version_of("tcp://127.0.0.1:1") == ""


def test_a_server_whose_answer_does_not_end_is_not_asked_for_ever(monkeypatch):
    async def drip(reader, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nx-more: ")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.05)

    monkeypatch.setattr("speechmeter.subjects.servers.process._MOST_ASKING_S", 0.2)
    with tcp(drip) as port:
        assert version_of(f"http://127.0.0.1:{port}/v1") == ""


def test_a_server_that_does_not_speak_http_says_nothing():
    async def noise(reader, writer):
        writer.write(b"\x00\x01 noise\r\n\r\n")
        await writer.drain()

    with tcp(noise) as port:
        assert version_of(f"http://127.0.0.1:{port}/v1") == ""


def test_a_command_in_a_plan_needs_trust(tmp_path):
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "models: [{name: s, load: 'wyoming:tcp://127.0.0.1:{port}', start: 'rm -rf x {port}'}]\npace: fast\n"
    )
    with pytest.raises(SubjectError, match="runs code that the plan names"):
        study_from_file(plan)
    assert study_from_file(plan, trust=True).cells.cases
    plan.write_text("models: [{name: s, load: 'wyoming:tcp://127.0.0.1:1'}]\npace: fast\n")
    assert study_from_file(plan).cells.cases


@pytest.mark.parametrize(
    ("options", "says"),
    [({}, "works only with `start`"), ({"start": "no-such-program"}, "no program"), ({"start": ""}, "is empty")],
)
def test_plans_that_cannot_start_a_server_are_refused(options, says):
    with pytest.raises(SubjectError, match=says):
        prepared(**options)


def test_options_of_starting_without_a_start_are_refused():
    plan = {"models": [{"name": "s", "load": "wyoming:tcp://127.0.0.1:1", "ready": "/health"}], "pace": "fast"}
    with pytest.raises(SubjectError, match="applies only with `start`"):
        WyomingSubject().check(study_from_python(plan).cells.cases[0])
