"""A real cluster of two nodes: a worker, a whole node and the driver are killed; nothing is lost, nothing double."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from datetime import datetime
from ipaddress import ip_address
from itertools import pairwise
from pathlib import Path

import pytest
from ray_nodes import children, command_of, ray_nodes, until

pytest.importorskip("ray")
pytestmark = pytest.mark.campaign

CASES = 40
SECONDS = ",".join(f"{(n + 1) / 10:g}" for n in range(CASES))
ARGS = ["run", "--model", "python:fakes.py:slow", "--seconds", SECONDS, "--meters", "latency", "--rounds", "1",
        "--cores", "1", "--threads", "1", "--set", "warmup=0", "--set", "samples=3", "--set", "min_samples=3",
        "--set", "kind=bench", "--launcher", "ray", "-o", "run", "--resume"]  # fmt: skip


def started(workshop, environ, *args):
    return subprocess.Popen(
        [sys.executable, "-m", "speechmeter", *args],
        cwd=workshop,
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=(workshop / "stderr.txt").open("ab"),
    )


def records_in(workshop):
    path = workshop / "run/records.jsonl"
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


def measuring(nodes):
    return [pid for pid in nodes.alive() if "speechmeter.launch.child" in command_of(pid)]


def interval(record):
    start = datetime.fromisoformat(record["started"]).timestamp()
    return start, start + record["wall_s"]


def test_a_sweep_survives_the_loss_of_a_worker_a_node_and_its_driver(workshop):
    with ray_nodes(workshop) as nodes:
        nodes.start("node-a", "--num-cpus=1", '--resources={"bench": 1}')
        nodes.start("node-b", "--num-cpus=1", '--resources={"bench": 1}')
        args = [*ARGS, "--address", nodes.address]

        def reached(count):
            return lambda: driver.poll() is not None or len(records_in(workshop)) >= count

        driver = started(workshop, nodes.environ, *args)
        until(reached(6), 120)
        os.kill(nodes.worker("node-b"), signal.SIGKILL)
        until(reached(14), 120)
        driver.kill()
        driver.wait()
        before = records_in(workshop)
        until(lambda: not measuring(nodes), 30)
        driver = started(workshop, nodes.environ, *args)
        until(reached(len(before) + 8), 120)
        os.kill(nodes.raylet("node-b"), signal.SIGKILL)
        assert driver.wait(180) == 0, (workshop / "stderr.txt").read_text()[-2000:]
        records = records_in(workshop)
    assert records[: len(before)] == before
    assert len(records) == len({record["id"] for record in records}) == CASES
    assert {record["status"] for record in records} == {"ok"}
    assert any("the first attempt was lost" in warning for record in records for warning in record["warnings"])
    for host in ("node-a", "node-b"):
        times = sorted(interval(record) for record in records if record["host"] == host)
        assert len(times) >= 5
        assert all(end <= start for (_, end), (start, _) in pairwise(times))
    assert nodes.alive() == []


def test_a_cluster_of_our_own_admits_nobody_else_and_ends_with_its_driver(workshop):
    with ray_nodes(workshop) as nodes:  # none of them is started: it is for its mark on whatever the driver starts
        environ = {key: value for key, value in nodes.environ.items() if not key.startswith("RAY_")}
        driver = started(
            workshop, environ, "run", "--model", "python:fakes.py:sleeper", "--launcher", "ray", "-o", "run"
        )
        raylet = until(lambda: next((p for p in children(driver.pid) if "raylet/raylet" in command_of(p)), None))
        until(lambda: measuring(nodes))
        address = command_of(raylet).partition("--gcs-address=")[2].split()[0]
        for mode in ({}, {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "a wrong one"}):
            stranger = subprocess.run(
                [sys.executable, "-c", f"import ray; ray.init(address={address!r})"],
                env={**environ, **mode, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"},  # or it asks at another address
                capture_output=True,
                text=True,
                check=False,
            )
            assert stranger.returncode != 0
            assert "oken" in stranger.stderr
        assert len(nodes.alive()) > 5
        assert [at for at in listening_on([driver.pid, *nodes.alive()]) if not ip_address(at).is_loopback] == []
        (folder,) = (path for path in Path(environ["TMPDIR"]).iterdir() if path.name.startswith("smray-"))
        assert folder.stat().st_mode & 0o777 == 0o700
        driver.kill()
        driver.wait()
        until(lambda: not measuring(nodes), 10)
        until(lambda: not nodes.alive(), 120)  # Ray's own agents take a minute to notice


def listening_on(pids):
    """The addresses on which these processes listen."""
    sockets = {}
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":
                words = bytes.fromhex(fields[1].partition(":")[0])
                raw = b"".join(words[n : n + 4][::-1] for n in range(0, len(words), 4))
                address = ip_address(raw)
                sockets[f"socket:[{fields[9]}]"] = str(getattr(address, "ipv4_mapped", None) or address)
    found = []
    for pid in pids:
        with contextlib.suppress(OSError):
            for entry in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    found += [sockets[link]] if (link := str(entry.readlink())) in sockets else []
    assert found
    return found


def test_a_run_whose_head_is_killed_ends_with_a_message_and_leaves_no_folder(workshop):
    with ray_nodes(workshop) as nodes:
        environ = {key: value for key, value in nodes.environ.items() if not key.startswith("RAY_")}
        driver = started(
            workshop, environ, "run", "--model", "python:fakes.py:sleeper", "--launcher", "ray", "-o", "run"
        )
        head = until(lambda: next((p for p in children(driver.pid) if "gcs/gcs_server" in command_of(p)), None))
        until(lambda: measuring(nodes))
        os.kill(head, signal.SIGKILL)
        assert driver.wait(45) == 1  # Ray alone would wait for 60 s, and then end the process without a word of ours
        assert "gcs_server on this machine ended" in (workshop / "stderr.txt").read_text()
        assert [path.name for path in Path(environ["TMPDIR"]).iterdir() if path.name.startswith("smray-")] == []
        until(lambda: not measuring(nodes), 10)


def test_what_the_cluster_does_not_have_is_refused_at_once_and_nothing_is_written(workshop):
    with ray_nodes(workshop) as nodes:
        nodes.start("node-a", "--num-cpus=1")
        driver = started(workshop, nodes.environ, *ARGS, "--address", nodes.address)
        assert driver.wait(120) == 2
    assert "(node-a: is not of kind 'bench')" in (workshop / "stderr.txt").read_text()
    assert not (workshop / "run").exists()
