"""Two nodes of a real Ray cluster, each with half of the streams, and one client with all of them: equal delays."""

import json
import subprocess
import sys
from statistics import median

import pytest
from live_servers import web_socket
from ray_nodes import ray_nodes

from speechmeter.core import metrics
from speechmeter.store.exchanges import read_exchanges
from speechmeter.store.run_dir import RunDir

pytest.importorskip("ray")
pytestmark = pytest.mark.campaign
STREAMS, WORK_S = 8, 0.2


async def answering(connection):
    """A final text a fixed time after the end of the audio."""
    import asyncio

    async for message in connection:
        if isinstance(message, str) and "eof" in message:
            await asyncio.sleep(WORK_S)
            await connection.send(json.dumps({"text": "one two"}))
            return
        if isinstance(message, bytes):
            await connection.send(json.dumps({"partial": "one"}))


def held(folder, environ, url, *more):
    plan = folder / "plan.json"
    plan.write_text(json.dumps({
        "models": [{"name": "server", "load": f"vosk-server:{url}"}], "audio": "sample", "seconds": 2,
        "pace": "realtime", "streams": STREAMS, "turns": 3, "turn_end": "oracle:100ms", "rounds": 1, "meters": [],
        "cores": 1, "threads": 1,
    }))  # fmt: skip
    output = folder / f"run-{len(more)}"
    command = [sys.executable, "-m", "speechmeter", "run", str(plan), "-o", str(output), *more]
    done = subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    (record,) = RunDir(output).records()
    (file,) = output.rglob("exchanges-0.jsonl.gz")
    return record, read_exchanges(file).exchanges


def test_two_nodes_with_half_of_the_streams_each_give_the_delays_of_one_client(workshop):
    with web_socket(answering) as url, ray_nodes(workshop) as nodes:
        nodes.start("node-a", "--num-cpus=1")
        nodes.start("node-b", "--num-cpus=1")
        alone, _ = held(workshop, nodes.environ, url)
        both, exchanges = held(
            workshop, nodes.environ, url, "--set", "clients=2", "--launcher", "ray", "--address", nodes.address
        )
    assert {one.stream for one in exchanges} == set(range(STREAMS))
    delays = [record.find(metrics.FINALIZE_DELAY.id).values for record in (alone, both)]
    print("finalize_delay, median, s:", [round(median(found), 4) for found in delays])
    assert [len(found) for found in delays] == [3 * STREAMS] * 2
    assert all(abs(median(found) - WORK_S) < 0.1 for found in delays)
    notes = both.find(metrics.ITEMS.id).notes["notes"]
    (clocks,) = (note for note in notes if "2 client processes" in note)
    print(clocks)
    assert "node-a (its clock is" in clocks and "node-b (its clock is" in clocks
