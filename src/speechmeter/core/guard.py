"""A small process between the launcher and a measurement: whatever the measurement starts ends with it.

Run as a script: `guard.py MESSAGE_FD LAUNCHER_PID GROUP COMMAND…`, where GROUP is the folder of a control group for the
command, or nothing. A template forks it instead, with `guard` (see `launch.template`). It adopts every orphan below it
(child subreaper), gets a signal from the kernel when whoever started it dies (parent-death signal), and kills all that
is left before it reports the exit status on MESSAGE_FD. Standard library only, no import of ours: it must start in
milliseconds and never fail.

A model may fork faster than its processes can be found. So the measurement has a process group of its own, which the
kernel kills at once, forks under way included. What left the group is stopped first, all of it, and then killed: what
is stopped does not fork.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

PARENT_DEATH_SIGNAL = 1
_PR_SET_CHILD_SUBREAPER = 36

_GRACE_S = 1.0
"""How long helpers of a model (compiler workers, say) may take to notice its end by themselves."""
_STOPPING_S = 1.0
"""How long new processes are looked for before those that were found are killed."""
_PAUSE_S = 0.02
_MOST_MORE = 4096
"""How many processes and threads may be added to those that the machine has; the kernel lets root have more."""

_ending = False
_left_behind: set[int] = set()
_killed: set[int] = set()
_command = 0
_group = ""


def main() -> None:
    """Guard the command that the arguments name."""
    message_fd, launcher, group, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:]
    guard(message_fd, launcher, group, lambda: os.execv(command[0], command))


def guard(message_fd: int, launcher: int, group: str, run: Callable[[], None]) -> None:
    """Run something in a process below this one, wait for it and for everything it left, report.

    `launcher` is the process that started this one, which ends with it. `run` must not return.
    """
    global _command, _group  # noqa: PLW0603 - shared with the signal handler
    _group = group
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    prctl(PARENT_DEATH_SIGNAL, signal.SIGTERM)
    if os.getppid() != launcher:
        return
    child = os.fork()
    if child == 0:
        _settle(_group)
        run()
    with contextlib.suppress(OSError):  # the child does it too: whoever comes first
        os.setpgid(child, child)
    _command = child
    _go_first()
    status = _wait(child)
    with contextlib.suppress(OSError):  # the launcher stops listening once the time is over
        os.write(message_fd, (json.dumps({"exit": status, "left_behind": len(_left_behind)}) + "\n").encode())
    if _group and os.getppid() != launcher:  # otherwise it is read first
        with contextlib.suppress(OSError):
            Path(_group).rmdir()


def _settle(group: str) -> None:
    """Make this the process that is guarded and limited."""
    guard = os.getppid()
    prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if os.getppid() != guard:
        os._exit(1)
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)
    with contextlib.suppress(OSError):  # the kernel's out-of-memory killer should choose the measurement first
        Path("/proc/self/oom_score_adj").write_text("1000")
    with contextlib.suppress(OSError):  # the command sees that it is not in it, and limits itself
        if group:
            Path(group, "cgroup.procs").write_text("0")
    with contextlib.suppress(OSError, ValueError, IndexError):
        _limit_processes()


def _limit_processes() -> None:
    """The kernel counts those of the user. All of the machine's are at least as many, and are read at once."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    most = _MOST_MORE + int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])
    if soft == resource.RLIM_INFINITY or most < soft:
        resource.setrlimit(resource.RLIMIT_NPROC, (most, hard))


def _wait(child: int) -> int:
    """Reap until nothing is left; the child's exit code, negative for a signal."""
    global _ending, _command  # noqa: PLW0603 - shared with the signal handler
    status = 0
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:
            return status
        if ended is not None and ended.si_pid == child:
            if not _ending:
                _left_behind.update(_after_grace())
            _ending = True
            _kill_all()  # before the child is reaped: until then nobody else can get the number of its group
            _command = 0
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        _reap_others()
        if _ending:
            started = time.monotonic()
            _kill_all()
            # what was killed needs the cores to end, more than we need them to look for others
            time.sleep(max(_PAUSE_S, 5 * (time.monotonic() - started)))


def _reap_others() -> None:
    """Bury all that have ended but the command, which is for `_wait`. Many may have, and looking round takes long."""
    while True:
        found = None
        with contextlib.suppress(ChildProcessError):
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        if found is None or found.si_pid in (0, _command):
            return
        os.waitpid(found.si_pid, 0)
        _killed.discard(found.si_pid)


def _after_grace() -> list[int]:
    """Processes that are still there after the grace; no wait when there are none."""
    deadline = time.monotonic() + _GRACE_S
    while (left := below(os.getpid())) and time.monotonic() < deadline:
        time.sleep(_PAUSE_S)
    return left


def _end(number: int, frame: object) -> None:
    global _ending  # noqa: PLW0603 - shared with the waiting loop
    _ending = True
    _kill_all()


def _kill_all() -> None:
    """The group of the command at once, the control group at once where the kernel can, then whatever else is below."""
    if _command:
        with contextlib.suppress(OSError):
            os.killpg(_command, signal.SIGKILL)
    if _group:
        with contextlib.suppress(OSError):
            Path(_group, "cgroup.kill").write_text("1")
    _killed.update(stop_then_kill(lambda: [pid for pid in below(os.getpid()) if pid not in _killed]))


def _go_first() -> None:
    """Among a thousand processes that compute, the one that ends them would get a thousandth of a core.

    Root may do better. While the model runs the guard sleeps, so that nothing is taken from a measurement.
    """
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))


def stop_then_kill(find: Callable[[], list[int]]) -> set[int]:
    """Stop what is found until nothing new is, then kill it all; what was killed."""
    stopped: set[int] = set()
    deadline = time.monotonic() + _STOPPING_S
    while (fresh := set(find()) - stopped) and time.monotonic() < deadline:
        stopped |= fresh
        _signal_all(fresh, signal.SIGSTOP)
    _signal_all(stopped | fresh, signal.SIGKILL)
    return stopped | fresh


def _signal_all(pids: set[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def below(top: int) -> list[int]:
    """Every process that descends from this one and has not ended."""
    children: dict[int, list[tuple[int, bool]]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - Path takes several times as long, while more are forked
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                state, parent, *_ = file.read().rpartition(b")")[2].split()
                children.setdefault(int(parent), []).append((int(name), state not in (b"Z", b"X")))
    found, left = [], [top]
    while left:
        for pid, lives in children.pop(left.pop(), ()):
            left.append(pid)
            if lives:
                found.append(pid)
    return found


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process, where the system has it."""
    with contextlib.suppress(OSError, AttributeError):  # absent outside Linux: the process group is all there is
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main()
