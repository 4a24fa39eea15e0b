"""Live runs as a user starts them: what the progress says, and what is kept when a run is killed."""

import signal
import subprocess
import sys
import time

import pytest

from speechmeter.store.exchanges import read_exchanges

ARGS = ["run", "--model", "known:live", "--seconds", "1", "--set", "audio=sample", "--pace", "realtime",
        "--silence", "0s", "--rounds", "1", "-o", "run"]  # fmt: skip


def finished(folder):
    """The exchanges of the only file of a run; empty while there is none."""
    files = list(folder.rglob("exchanges-*.jsonl.gz"))
    return read_exchanges(files[0]).exchanges if files and files[0].stat().st_size else ()


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT])
def test_finished_conversations_are_kept_whatever_ends_the_run(stop, workshop, cli):
    process = subprocess.Popen(
        [sys.executable, "-m", "speechmeter", *ARGS, "--turns", "8"],
        cwd=workshop, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        while len(finished(workshop / "run")) < 2:
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(stop)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert b"Traceback" not in errors
    kept = finished(workshop / "run")
    assert 2 <= len(kept) < 8
    assert [one.turn for one in kept] == list(range(len(kept)))
    assert all(one.sends[-1].to_s == 1.0 for one in kept)

    if stop is signal.SIGKILL:  # the round is held again, and what was kept of it has another name
        done = cli(*ARGS, "--turns", "8", "--resume")
        assert done.returncode == 0, done.stderr
        files = {path.name: read_exchanges(path).exchanges for path in workshop.rglob("exchanges-*.jsonl.gz")}
        assert len(files.pop("exchanges-0.jsonl.gz")) == 8
        assert files == {"exchanges-0-unfinished-1.jsonl.gz": kept}
