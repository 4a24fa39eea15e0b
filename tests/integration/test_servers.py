"""Runs that start a server: real processes, an interrupt, a kill; and servers that others wrote, where they are."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from speechmeter.store.exchanges import read_exchanges

SERVER = Path(__file__).parents[1] / "wyoming_server.py"


def plan_in(folder, *more):
    pids = folder / "pids"
    command = f"{sys.executable} {SERVER} {{port}} --pid {pids} {' '.join(more)}"
    plan = folder / "plan.yaml"
    plan.write_text(json.dumps({
        "models": [{"name": "server", "load": "wyoming:tcp://127.0.0.1:{port}", "start": command}],
        "audio": "sample", "seconds": 1, "pace": "fast", "turns": 2, "rounds": 1, "meters": ["memory"],
    }))  # fmt: skip
    return plan, pids


def run(plan, output, *flags):
    command = [sys.executable, "-m", "speechmeter", "run", str(plan), "-o", str(output), *flags]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=output.parent)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def started(pids):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if pids.exists() and len(found := pids.read_text().split()) == 2:
            return [int(pid) for pid in found]
        time.sleep(0.1)
    raise AssertionError("the server was not started")


def test_a_run_starts_a_server_measures_it_and_ends_it(tmp_path):
    plan, pids = plan_in(tmp_path)
    refused = run(plan, tmp_path / "run")
    assert "runs code that the plan names" in refused.communicate(timeout=120)[0] and refused.returncode == 2
    assert not (tmp_path / "run").exists() and not pids.exists()
    process = run(plan, tmp_path / "run", "--trust")
    assert process.communicate(timeout=180)[0] and process.returncode == 0
    (record,) = map(json.loads, (tmp_path / "run" / "records.jsonl").read_text().splitlines())
    found = {one["metric"]: one for one in record["measurements"]}
    assert record["status"] == "ok"
    assert found["live_answered.v1"]["values"] == [1.0, 1.0]
    assert found["memory_server.v1"]["values"][0] > 2**20
    assert not any(map(alive, started(pids)))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_of_a_server_is_left_when_its_run_is_interrupted_or_killed(number, tmp_path):
    plan, pids = plan_in(tmp_path, "--slow", "20")
    process = run(plan, tmp_path / "run", "--trust")
    try:
        found = started(pids)
        time.sleep(0.5)
        os.kill(process.pid, number)
        process.wait(60)
    finally:
        process.kill()
    deadline = time.monotonic() + 30
    while any(map(alive, found)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(alive, found))


OVOS = shutil.which("ovos-stt-server", path=os.environ.get("SPEECHMETER_SERVERS", os.environ.get("PATH")))
needs_ovos = pytest.mark.skipif(
    OVOS is None,
    reason="ovos-stt-server is in no folder of SPEECHMETER_SERVERS: in an environment of its own, pip install --pre "
    "ovos-stt-http-server ovos-stt-plugin-pocketsphinx websockets",
)


@needs_ovos
def test_three_dialects_of_a_server_that_others_wrote_hear_the_same(tmp_path):
    common = {"start": f"{OVOS} --engine ovos-stt-plugin-pocketsphinx --host 127.0.0.1 --port {{port}}"}
    root = "127.0.0.1:{port}"
    plan = tmp_path / "plan.yaml"
    plan.write_text(json.dumps({
        "models": [
            {"name": "file", "load": f"openai-transcriptions:http://{root}/openai/v1", "model": "x", **common},
            {"name": "vosk", "load": f"vosk-server:ws://{root}/vosk", **common},
            {"name": "deepgram", "load": f"deepgram:ws://{root}/deepgram/v1/listen", **common},
        ],
        "audio": "sample", "seconds": 3, "pace": "fast", "turns": 1, "rounds": 1, "silence": "0s", "meters": ["memory"],
    }))  # fmt: skip
    assert run(plan, tmp_path / "run", "--trust").communicate(timeout=300)
    finals = set()
    for file in (tmp_path / "run").rglob("exchanges-0.jsonl.gz"):
        (exchange,) = read_exchanges(file).exchanges
        finals.add((exchange.error, *(event.text for event in exchange.of_kind("final"))))
    ((error, text),) = finals
    assert error == "" and "harbor" in text


@needs_ovos
def test_a_server_that_works_on_one_request_at_a_time_shows_its_queue(tmp_path):
    start = f"{OVOS} --engine ovos-stt-plugin-pocketsphinx --host 127.0.0.1 --port {{port}}"
    load = "openai-transcriptions:http://127.0.0.1:{port}/openai/v1"
    plan = tmp_path / "plan.yaml"
    plan.write_text(json.dumps({
        "models": [{"name": "file", "load": load, "model": "x", "start": start}],
        "audio": "sample", "seconds": 3, "pace": "fast", "turns": 2, "streams": 4, "rounds": 1, "phase": "aligned",
        "meters": ["memory"], "answer_timeout": "120s",
    }))  # fmt: skip
    assert run(plan, tmp_path / "run", "--trust").communicate(timeout=300)
    (file,) = (tmp_path / "run").rglob("exchanges-0.jsonl.gz")
    first = sorted(one.ended_s for one in read_exchanges(file).exchanges if one.turn == 0)
    gaps = [after - before for before, after in pairwise(first)]
    assert min(gaps) > 0.2 * first[0]  # they end one after another, not together
