"""A subject that misbehaves on command: `faulty:KIND@PHASE`. Torch-free; found by its entry point once it is planted.

It knows the phase by where it is called from and by the number of the call, which the protocol of the plan fixes: one
first call, one warm-up call, then samples; in the memory process the readings begin with the second call.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from speechmeter import Prepared, Stage
from speechmeter.core.protocols import Installed

FIRST_CALL_S = 0.006
"""Longer than what the latency meter makes trial calls for."""


class OutOfMemoryError(RuntimeError):
    """As torch names it."""


class AcceleratorError(RuntimeError):
    """As torch names it."""


class FaultySubject:
    summary = "misbehaves on command: faulty:KIND@PHASE"
    axes = ()
    options = ()
    takes = ()
    runs_code = False

    def installed(self):
        return Installed(version="1")

    def libraries(self, case):
        return ("numpy",)

    def check(self, case):
        misbehave(case, "preflight")

    def unavailable(self, case):
        return None

    def prepare(self, case, device):
        misbehave(case, "load")
        calls = []

        def call(batch):
            calls.append(batch)
            misbehave(case, phase_of(len(calls)))
            time.sleep(FIRST_CALL_S if len(calls) == 1 else 0.001)
            return ["spoken"]

        return Prepared(stages=(Stage(name="model", fn=call),))


def phase_of(call):
    if call == 1:
        return "first call"
    if "MALLOC_MMAP_THRESHOLD_" in os.environ:
        return "memory pass"
    return "warm-up" if call == 2 else "latency pass"


def misbehave(case, phase):
    kind, _, wanted = case.subject.source.partition("@")
    if wanted == phase and kind != "fine" and not os.environ.get("FAULTY_HEALED"):
        KINDS[kind]()


def error():
    raise ValueError("the model is unhappy")


def memory_error():
    raise MemoryError


def bad_alloc():
    print("terminate called after throwing an instance of 'std::bad_alloc'", file=sys.stderr, flush=True)
    os.abort()


def eat_memory():
    held = []
    while True:
        held.append(bytearray(b"\1") * 2**24)


def cuda_oom():
    raise OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 8.00 GiB")


def cuda_sticky():
    raise AcceleratorError("CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be ...")


def segfault():
    ctypes.string_at(0)


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


def leave():
    sys.exit(3)


def leave_at_once():
    os._exit(0)


def hang():
    Path(os.environ["FAULTY_CLOCK"]).with_name("hangs").touch()
    time.sleep(1000)


def ignore_signals():
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    hang()


def be_loud():
    for _ in range(200):
        sys.stdout.write("x" * 2**20)


def leave_a_thread():
    threading.Thread(target=hang).start()


def leave_processes():
    """One in a session of its own, one a double fork that ignores what it can."""
    subprocess.Popen(["sleep", "98765"], start_new_session=True)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.execvp("sleep", ["sleep", "98764"])
        os._exit(0)


def parent_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def kill_guard():
    os.kill(os.getppid(), signal.SIGKILL)
    hang()


def launcher():
    """Its own process in preflight; the guard stands between it and a measurement."""
    if any("speechmeter.launch.child" in word for word in sys.orig_argv):
        return parent_of(os.getppid())
    return parent_of(template()) if template() else os.getpid()


def template():
    """The process from which this one was forked, if any: the parent of its guard."""
    forked = any("speechmeter.launch.template" in word for word in sys.orig_argv)
    return parent_of(os.getppid()) if forked else None


def kill_template():
    """Nothing goes wrong in a process that was started anew."""
    if template():
        os.kill(template(), signal.SIGKILL)
        hang()


def kill_launcher():
    os.kill(launcher(), signal.SIGKILL)
    hang()


def interrupt():
    os.kill(launcher(), signal.SIGINT)
    hang()


def fill_disk():
    with Path(os.environ["FAULTY_DISK"], "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            return


def make_read_only():
    subprocess.run(["mount", "-o", "remount,ro", os.environ["FAULTY_DISK"]], check=True)


def turn_clock_back():
    Path(os.environ["FAULTY_CLOCK"]).touch()


KINDS = {
    "error": error, "memory-error": memory_error, "bad-alloc": bad_alloc, "memory-limit": eat_memory,
    "cuda-oom": cuda_oom, "cuda-sticky": cuda_sticky, "segfault": segfault, "kill": kill, "exit": leave,
    "exit-at-once": leave_at_once, "hang": hang, "ignores-signals": ignore_signals, "loud": be_loud,
    "thread": leave_a_thread, "processes": leave_processes, "guard-killed": kill_guard,
    "template-killed": kill_template,
    "launcher-killed": kill_launcher, "interrupt": interrupt, "disk-full": fill_disk, "read-only": make_read_only,
    "clock-jump": turn_clock_back,
}  # fmt: skip
