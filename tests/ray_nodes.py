"""A real Ray cluster of several nodes on this machine, each with a name of its own; and who of it is alive."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MARK = "SPEECHMETER_TEST_CLUSTER"
OBJECT_STORE_BYTES = 80_000_000


class RayNodes:
    """Nodes that are started with `ray start`, with token authentication; `environ` is what a driver needs.

    `workshop` is the folder in which drivers are started.
    """

    def __init__(self, workshop: Path) -> None:
        self._workshop = workshop.resolve()
        self.folder = Path(tempfile.mkdtemp(prefix="sm-ray-", dir="/tmp"))  # the path of a socket must be short
        self.address = f"127.0.0.1:{free_port()}"
        self.mark = secrets.token_hex(8)
        self.environ = {
            **os.environ,
            _MARK: self.mark,
            "TMPDIR": str(self.folder),
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(16),
            "RAY_USAGE_STATS_ENABLED": "0",
        }

    def start(self, name: str, *options: str) -> None:
        """One node; the first is the head."""
        first = not any(self.folder.iterdir())
        head = ["--head", f"--port={self.address.partition(':')[2]}", f"--temp-dir={self.folder}"]
        joins = [f"--address={self.address}"]
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", *(head if first else joins)]
        shared = ["--node-ip-address=127.0.0.1", f"--object-store-memory={OBJECT_STORE_BYTES}", "--num-gpus=0"]
        with (self.folder / f"{name}.txt").open("wb") as log:  # a pipe would stay open as long as the node lives
            done = subprocess.run(
                [*command, *shared, *(["--include-dashboard=false"] if first else []), *options],
                env={**self.environ, "SPEECHMETER_HOST": name},
                cwd=self.folder,
                stdout=log,
                stderr=log,
                timeout=120,
                check=False,
            )
        assert done.returncode == 0, (self.folder / f"{name}.txt").read_text()[-3000:]

    def raylet(self, name: str) -> int:
        """The process of a node on which all others of it depend."""
        return next(pid for pid in self.alive() if self._is(pid, "raylet/raylet", name))

    def worker(self, name: str) -> int:
        """The worker process that holds a node's device; waits until there is one."""
        above = self.raylet(name)
        return until(lambda: next((pid for pid in children(above) if command_of(pid).startswith("ray::Worker")), None))

    def alive(self) -> list[int]:
        """All processes of the cluster and of what runs on it.

        By the variable that they inherited; those of Ray that rename themselves lose it, so by where they stand too.
        """
        mark = f"{_MARK}={self.mark}".encode()
        found = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        return [pid for pid in found if mark in _read(pid, "environ") or self._stands_here(pid)]

    def _stands_here(self, pid: int) -> bool:
        with contextlib.suppress(OSError):
            return pid != os.getpid() and (Path("/proc") / str(pid) / "cwd").readlink() in (self.folder, self._workshop)
        return False

    def close(self) -> None:
        """End what is left, and remove its files."""
        for pid in self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until(lambda: not self.alive())
        shutil.rmtree(self.folder, ignore_errors=True)

    def _is(self, pid: int, program: str, name: str) -> bool:
        return program in command_of(pid).partition(" ")[0] and f"SPEECHMETER_HOST={name}".encode() in _read(
            pid, "environ"
        )


@contextmanager
def ray_nodes(workshop: Path) -> Iterator[RayNodes]:
    """Nodes that are gone afterwards, and all that stands in the workshop."""
    nodes = RayNodes(workshop)
    try:
        yield nodes
    finally:
        nodes.close()


def until(found, timeout_s: float = 60.0):
    """What `found` gives as soon as it is true; an AssertionError when it never is."""
    deadline = time.monotonic() + timeout_s
    while not (answer := found()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)
    return answer


def children(parent: int) -> list[int]:
    """The processes below one."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = _read(int(entry.name), "stat").rpartition(b")")[2].split()
            if len(fields) > 1 and int(fields[1]) == parent:
                found.append(int(entry.name))
    return found


def command_of(pid: int) -> str:
    """Its command line."""
    return _read(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace")


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _read(pid: int, name: str) -> bytes:
    try:
        return (Path("/proc") / str(pid) / name).read_bytes()
    except OSError:
        return b""
