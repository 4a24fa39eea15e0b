"""A small process between the launcher and a measurement: whatever the measurement starts ends with it.

Run as a script: `guard.py MESSAGE_FD LAUNCHER_PID GROUP COMMAND…`, where GROUP is the folder of a control group for the
command, or nothing. It adopts every orphan below it (child subreaper), is told
by the kernel when the launcher dies (parent-death signal), and kills all that is left before it reports the command's
exit status on MESSAGE_FD. Standard library only, no import of ours: it must start in milliseconds and never fail.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
import time
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

_GRACE_S = 1.0
"""How long helpers of a model (compiler workers, say) may take to notice its end by themselves."""

_ending = False
_left_behind: set[int] = set()


def main() -> None:
    """Start the command, wait for it and for everything it left, report."""
    message_fd, launcher, group, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:]
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != launcher:
        return
    child = os.fork()
    if child == 0:
        _become(command, group)
    status = _wait(child)
    with contextlib.suppress(OSError):  # the launcher stops listening once the time is over
        os.write(message_fd, (json.dumps({"exit": status, "left_behind": len(_left_behind)}) + "\n").encode())
    if group and os.getppid() != launcher:  # otherwise the launcher reads it first
        with contextlib.suppress(OSError):
            Path(group).rmdir()


def _become(command: list[str], group: str) -> None:
    guard = os.getppid()
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if os.getppid() != guard:
        os._exit(1)
    with contextlib.suppress(OSError):  # the kernel's out-of-memory killer should choose the measurement first
        Path("/proc/self/oom_score_adj").write_text("1000")
    with contextlib.suppress(OSError):  # the command sees that it is not in it, and limits itself
        if group:
            Path(group, "cgroup.procs").write_text("0")
    os.execv(command[0], command)


def _wait(child: int) -> int:
    """Reap until nothing is left; the child's exit code, negative for a signal."""
    global _ending  # noqa: PLW0603 - shared with the signal handler
    status = 0
    while True:
        try:
            pid, wait_status = os.waitpid(-1, 0)
        except ChildProcessError:
            return status
        if pid == child:
            status = os.waitstatus_to_exitcode(wait_status)
            if not _ending:
                _left_behind.update(_after_grace())
            _ending = True
        if _ending:
            _kill_children()


def _after_grace() -> list[int]:
    """Children that are still there after the grace; no wait when there are none."""
    deadline = time.monotonic() + _GRACE_S
    while (left := _children()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def _end(number: int, frame: object) -> None:
    global _ending  # noqa: PLW0603 - shared with the waiting loop
    _ending = True
    _kill_children()


def _kill_children() -> None:
    for pid in _children():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _children() -> list[int]:
    mine = os.getpid()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == mine and fields[0] != "Z":
                    found.append(int(entry.name))
    return found


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(OSError, AttributeError):  # absent outside Linux: the process group is all there is
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main()
