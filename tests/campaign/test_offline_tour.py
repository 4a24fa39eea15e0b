"""`--offline` proves itself: the tour runs where there is no network at all, and asks for none where there is one."""

import json
import os
import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.campaign
pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("transformers", reason="needs transformers")

ALONE = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]
PATIENT = ["--set", "limits.time_s=300"]
REACH = "import socket; socket.create_connection(('192.0.2.1', 9), timeout=2)"


@pytest.fixture(scope="module")
def alone():
    """The beginning of a command line for a program without a network."""
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare, for a network namespace of its own")
    tried = subprocess.run([*ALONE, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"a network namespace is not permitted here: {tried.stderr.strip()}")
    return ALONE


def test_there_is_no_network_in_the_namespace(alone):
    tried = subprocess.run([*alone, sys.executable, "-c", REACH], capture_output=True, text=True, check=False)
    assert "Network is unreachable" in tried.stderr
    links = subprocess.run([*alone, "cat", "/proc/net/dev"], capture_output=True, text=True, check=True).stdout
    assert [line.split(":")[0].strip() for line in links.splitlines()[2:]] == ["lo"]


def test_the_tour_runs_without_a_network(alone, workshop):
    environ = {key: value for key, value in os.environ.items() if "OFFLINE" not in key}
    done = subprocess.run(
        [*alone, sys.executable, "-m", "speechmeter", "run", "--offline", "-o", "run", *PATIENT],
        cwd=workshop,
        capture_output=True,
        text=True,
        timeout=1500,
        env={**environ, "HF_HOME": str(workshop / "empty")},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in (workshop / "run/records.jsonl").read_text().splitlines()]
    assert [record["status"] for record in records] == ["ok"] * 9, [record["reason"] for record in records]
    assert (workshop / "run/report.html").stat().st_size > 100_000


def test_a_hub_id_is_refused_offline_before_anything_is_asked(alone, workshop):
    environ = {key: value for key, value in os.environ.items() if "OFFLINE" not in key}
    done = subprocess.run(
        [*alone, sys.executable, "-m", "speechmeter", "run", "--offline", "--model", "transformers:someone/model"],
        cwd=workshop,
        capture_output=True,
        text=True,
        timeout=120,
        env={**environ, "HF_HOME": str(workshop / "empty")},
        check=False,
    )
    assert done.returncode == 2
    assert "is not in the local cache, and --offline is set" in done.stderr
    assert not (workshop / "runs").exists()
