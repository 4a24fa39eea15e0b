"""A run that is killed again and again, at moments nobody chose, still ends with every record exactly once."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.campaign

CASES, ROUNDS = 6, 2
ARGS = ["run", "--model", "python:fakes.py:slow", "--model", "python:fakes.py:parent", "--seconds", "1,2,3",
        "--meters", "latency", "--rounds", str(ROUNDS), "--set", "samples=1", "--set", "min_samples=1",
        "-o", "run", "--resume"]  # fmt: skip


def alive_in(folder):
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if (entry / "cwd").readlink() == folder.resolve():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


@pytest.mark.parametrize("seed", range(3))
def test_every_record_exactly_once_after_random_kills(seed, workshop):
    choose = random.Random(seed)
    before: list[bytes] = []
    for attempt in range(40):
        process = subprocess.Popen(
            [sys.executable, "-m", "speechmeter", *ARGS],
            cwd=workshop,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            process.wait(choose.uniform(0.5, 5) if attempt < 39 else 900)  # the last one may finish on any machine
        except subprocess.TimeoutExpired:
            process.send_signal(choose.choice([signal.SIGKILL, signal.SIGINT, signal.SIGTERM]))
            process.wait(120)
        deadline = time.monotonic() + 60
        while alive_in(workshop) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert alive_in(workshop) == []
        path = workshop / "run/records.jsonl"
        whole = (
            [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
            if path.exists()
            else []
        )
        assert whole[: len(before)] == before
        before = whole
        if process.returncode == 0:
            break
    keys = [(record["id"], record["round"]) for record in map(json.loads, before)]
    assert len(keys) == len(set(keys)) == CASES * ROUNDS
