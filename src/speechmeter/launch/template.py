"""A template: a process that has imported libraries and done nothing else, from which measuring processes are forked.

It gets jobs one at a time on a socket, each with the descriptors for messages and for what the model prints, and forks
a guard for each, which forks the measuring process. Its answers are JSON lines:

    {"ready": BYTES}     it can be forked; so much memory of its own comes along
    {"refused": REASON}  it cannot, and ends
    {"guard": PID}       a job was started
    {"ended": CODE}      its guard has ended

What a forked process lacks of a new one is made up for before it measures: pages of libraries that were in use are
mapped again, so that neither the first calls nor the readings of memory differ.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import signal
import socket
import sys
import traceback
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from speechmeter.core import guard, plugins
from speechmeter.core.guard import PARENT_DEATH_SIGNAL, prctl
from speechmeter.core.machine import kib_field
from speechmeter.launch import child
from speechmeter.launch.offline import is_offline, refuse_network

_MADV_POPULATE_READ = 22
_PRESENT = 1 << 63
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

Run = tuple[int, int]
"""Address and length of pages in a row."""


def main() -> None:
    """Import what the first line on the socket names, then fork for every job that comes: SOCKET LAUNCHER_PID."""
    jobs = socket.socket(fileno=int(sys.argv[1]))
    jobs.set_inheritable(False)
    prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != int(sys.argv[2]):
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    del sys.argv[2:]  # libraries that look find what a new process has
    try:
        order = _line(jobs)
        job = child.Job.from_json(order["job"])
        child.stay_on_cores(job.case)
        if is_offline():
            refuse_network()
        _import(job, order["modules"])
        for fd in range(3):  # a job's descriptors would take the place of one that a library closed
            os.fstat(fd)
        mapped = list(_mapped_files())
        _map_again(mapped)
        _refuse_threads()
    except Exception as error:
        _answer(jobs, {"refused": f"{type(error).__name__}: {error}"})
        return
    gc.collect()
    gc.freeze()  # a collection in a forked process would touch, and so copy, every object
    _answer(jobs, {"ready": kib_field("/proc/self/status", "RssAnon") or 0})
    while (received := _received(jobs)) is not None:
        started = os.fork()
        if started == 0:
            jobs.close()
            _guard(*received, mapped)
        for fd in received[1]:
            os.close(fd)
        _answer(jobs, {"guard": started})
        _answer(jobs, {"ended": os.waitstatus_to_exitcode(os.waitpid(started, 0)[1])})


def _import(job: child.Job, modules: Sequence[str]) -> None:
    """The plug-ins of the first job, which most of the others share, and the libraries of its model."""
    plugins.subject(job.case.subject.plugin)
    plugins.workload(job.case.workload.plugin)
    for name in job.meters:
        plugins.meter(name)
    for module in modules:
        name, _, attribute = module.partition(":")
        found = importlib.import_module(name)
        if attribute:  # of a library that imports its parts when they are asked for
            getattr(found, attribute, None)


def _refuse_threads() -> None:
    """Raise RuntimeError for threads that do not survive a fork.

    The BLAS of numpy ends its threads before one and starts others when they are needed, so they are gone after a
    first fork. Any that is left is not there in a forked process, while what it left behind is.
    """
    first = os.fork()
    if first == 0:
        os._exit(0)
    os.waitpid(first, 0)
    threads = len(os.listdir("/proc/self/task")) - 1  # noqa: PTH208 - as in the guard
    if threads:
        raise RuntimeError(f"importing its libraries started {threads} thread(s), which do not survive a fork")


def _received(jobs: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The next job with its descriptors; None once the launcher has closed the other end."""
    first, fds, *_ = socket.recv_fds(jobs, 1, 2)
    if not first:
        return None
    for fd in fds:
        os.set_inheritable(fd, False)
    return _line(jobs), fds


def _line(jobs: socket.socket) -> dict[str, Any]:
    with jobs.makefile("rb") as lines:  # the launcher sends the next one after the answer to this one
        found: dict[str, Any] = json.loads(lines.readline())
    return found


def _answer(jobs: socket.socket, message: dict[str, Any]) -> None:
    jobs.sendall((json.dumps(message) + "\n").encode())


def _guard(order: dict[str, Any], fds: Sequence[int], mapped: Sequence[Run]) -> None:
    """Become the guard of a job; never returns."""
    message_fd, printed_fd = fds
    template = os.getppid()
    os.setsid()
    os.dup2(printed_fd, 1)
    os.dup2(printed_fd, 2)
    os.close(printed_fd)
    sys.argv[1] = str(message_fd)

    def measure() -> None:
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # as an interpreter starts
            _map_again(mapped)
            if "numpy" in sys.modules:  # its generator is seeded at import; all would draw the same
                sys.modules["numpy"].random.seed()
            child.run(child.Job.from_json(order["job"]), message_fd, forked=True)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(1)

    try:
        guard.guard(message_fd, template, order["group"], measure)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(1)


def _mapped_files() -> Iterator[Run]:
    """What of mapped files is in memory. A fork leaves it out; reading it maps it again."""
    with open("/proc/self/pagemap", "rb", buffering=0) as pages:  # noqa: PTH123 - as in the guard
        for line in Path("/proc/self/maps").read_text().splitlines():
            span, mode, _, _, inode, *_ = line.split()
            if inode == "0" or not mode.startswith("r"):
                continue
            first, end = (int(text, 16) for text in span.split("-"))
            pages.seek(first // _PAGE_BYTES * 8)
            entries = array("Q", pages.read((end - first) // _PAGE_BYTES * 8))
            start = None
            for index, entry in enumerate(entries):
                if entry & _PRESENT and start is None:
                    start = index
                elif not entry & _PRESENT and start is not None:
                    yield first + start * _PAGE_BYTES, (index - start) * _PAGE_BYTES
                    start = None
            if start is not None:
                yield first + start * _PAGE_BYTES, (len(entries) - start) * _PAGE_BYTES


def _map_again(mapped: Sequence[Run]) -> None:
    """Raises OSError on kernels before 5.14, which cannot."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for address, length in mapped:
        if libc.madvise(address, length, _MADV_POPULATE_READ) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"madvise(MADV_POPULATE_READ), which needs Linux 5.14, failed: {os.strerror(number)}")
