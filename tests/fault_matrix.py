"""The fault matrix: what each kind of fault does in each phase of a run, or why it cannot occur there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import yaml

from speechmeter.store.run_dir import RunDir

HERE = Path(__file__).parent
PREFLIGHT, WRITING = "preflight", "writing"
MEASURING = ("load", "first call", "warm-up", "latency pass", "memory pass")
PHASES = (PREFLIGHT, *MEASURING, WRITING)
MARK = "STARTED_BY_THE_FAULT_MATRIX_IN"
BACK_S = 2 * 365 * 86400

OF_THE_MODEL = {
    "error": "error", "memory-error": "oom", "bad-alloc": "oom", "memory-limit": "oom", "cuda-oom": "oom",
    "cuda-sticky": "crashed", "segfault": "crashed", "kill": "crashed", "exit": "error", "exit-at-once": "crashed",
    "hang": "timeout", "ignores-signals": "timeout", "loud": "ok", "thread": "ok", "processes": "ok",
}  # fmt: skip
"""What a model does in its own process, and the status of its record."""
OF_THE_RUN = {
    "interrupt": 130, "launcher-killed": -9, "guard-killed": 0, "template-killed": 0,
    "disk-full": 1, "read-only": 1, "clock-jump": 0,
}  # fmt: skip
"""What befalls the run as a whole, and the code that it ends with."""
BY_A_PLUGIN = {"error": 2, "memory-error": 2, "exit": 2, "exit-at-once": 0, "segfault": -11, "kill": -9, "hang": 130}
"""What a broken plug-in does when it is asked in preflight, in the launcher's own process, and how that ends."""
NO_ROOM_AT_ALL = 2
"""In preflight a disk that cannot be written is bad input."""
NO_MODEL, NO_GUARD, ENDED = (
    "nothing of a model runs in preflight",
    "there is no guard and no template before and after a measurement",
    "the processes of the model have ended when its record is written",
)


def impossible(kind: str, phase: str) -> str | None:
    """Why a kind of fault cannot occur in a phase; None where it can."""
    if kind in ("guard-killed", "template-killed") and phase not in MEASURING:
        return NO_GUARD
    if kind in OF_THE_MODEL and phase == WRITING:
        return ENDED
    return NO_MODEL if kind in OF_THE_MODEL and phase == PREFLIGHT and kind not in BY_A_PLUGIN else None


IN_A_MODEL = [(kind, phase) for kind in OF_THE_MODEL for phase in MEASURING]
IN_PREFLIGHT = [(kind, PREFLIGHT) for kind in OF_THE_MODEL if impossible(kind, PREFLIGHT) is None]
OF_ALL = [(kind, phase) for kind in OF_THE_RUN for phase in PHASES if impossible(kind, phase) is None]


def exit_code(kind: str, phase: str) -> int:
    """How a run ends that this fault befalls as a whole."""
    if phase == PREFLIGHT and kind in BY_A_PLUGIN:
        return BY_A_PLUGIN[kind]
    return NO_ROOM_AT_ALL if phase == PREFLIGHT and kind in ("disk-full", "read-only") else OF_THE_RUN[kind]


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A folder in which runs go wrong; `disk` is where they are written, `processes` how they are started."""

    folder: Path
    disk: Path
    processes: str = "exec"

    @property
    def output(self) -> Path:
        return self.disk / "run"

    def plan(self, sources: list[str]) -> None:
        """Two samples after one warm-up call, in a process of 6 s and 1 GiB at most."""
        plan = {
            "models": [{"name": source, "load": f"faulty:{source}"} for source in sources],
            "seconds": 1, "rounds": 1, "discard": 2, "repeats": 2, "threads": 1, "meters": ["latency", "memory"],
            "limits": {"time_s": 6, "memory_gib": 1},
        }  # fmt: skip
        (self.folder / "plan.yaml").write_text(yaml.safe_dump(plan))

    def run(self, *args: str, writing: str | None = None, seconds: float = 900, **environ: str) -> int:
        """Run the plan; the exit code, and what it said in `said`."""
        command = ["-m", "speechmeter"] if writing is None else [str(HERE / "faulty_launcher.py"), writing]
        wanted = ["-o", str(self.output), *args]
        with (self.folder / "said").open("w") as said:
            process = subprocess.Popen(
                [sys.executable, *command, "run", "plan.yaml", "--processes", self.processes, *wanted],
                cwd=self.folder,
                stdout=said,
                stderr=said,
                env={**os.environ, **self.environ(), **environ},
            )
            return process.wait(seconds)

    def environ(self) -> dict[str, str]:
        jump = self.folder / "jump"
        found = {MARK: str(self.folder), "FAULTY_DISK": str(self.disk), "FAULTY_CLOCK": str(jump)}
        clock = self.folder / "clock.so"
        return {**found, "PYTHONPATH": str(self.folder), **({"LD_PRELOAD": str(clock)} if clock.exists() else {})}

    @property
    def said(self) -> str:
        return (self.folder / "said").read_text()

    def lines(self) -> list[bytes]:
        """The whole lines of the records."""
        path = self.output / "records.jsonl"
        raw = path.read_bytes() if path.exists() else b""
        return [line for line in raw.splitlines(keepends=True) if line.endswith(b"\n")]

    def statuses(self) -> dict[str, str]:
        """The status of each model's record, read as any reader does; the last where it was measured twice."""
        return {r.case.subject.source: r.status for r in RunDir(self.output).records()}

    def heal(self) -> None:
        """Make room, make it writable, put the clock right."""
        if os.path.ismount(self.disk):
            subprocess.run(["mount", "-o", "remount,rw", str(self.disk)], check=True)
        (self.disk / "filler").unlink(missing_ok=True)
        (self.folder / "jump").unlink(missing_ok=True)

    def resume(self) -> int:
        """The same run once nothing goes wrong any more."""
        self.heal()
        return self.run("--resume", "--retry-failed", FAULTY_HEALED="1")


def plant(folder: Path) -> None:
    """Install the faulty subject in a folder, for whoever has it on its path."""
    shutil.copy(HERE / "faulty_subject.py", folder)
    about = folder / "faulty-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: faulty\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[speechmeter.subjects]\nfaulty = faulty_subject:FaultySubject\n")


CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long back(void) { const char *file = getenv("FAULTY_CLOCK"); return file && !access(file, F_OK) ? BACK : 0; }
int clock_gettime(clockid_t id, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(id, now);
    if (!failed && id == CLOCK_REALTIME) now->tv_sec -= back();
    return failed;
}
time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
int gettimeofday(struct timeval *at, void *zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec; at->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""


def plant_clock(folder: Path) -> None:
    """A clock that goes back by two years as soon as the file `jump` is there; needs a C compiler."""
    (folder / "clock.c").write_text(CLOCK.replace("BACK", str(BACK_S)))
    command = ["cc", "-shared", "-fPIC", "-o", str(folder / "clock.so"), str(folder / "clock.c"), "-ldl"]
    subprocess.run(command, check=True)


def left_running(folder: Path, patience_s: float = 5.0) -> list[str]:
    """Command lines of processes that a run of this folder left: they inherit its mark, whatever they became."""
    deadline = time.monotonic() + patience_s
    while (found := _marked(folder)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def _marked(folder: Path) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if f"{MARK}={folder}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue
    return found


def drawn(words: dict[tuple[str, str], str]) -> str:
    """The matrix as text: a word for what was seen, a letter for the reason why nothing can be seen."""
    letters = {reason: chr(ord("a") + place) for place, reason in enumerate((NO_MODEL, NO_GUARD, ENDED))}
    rows = [["", *PHASES]]
    for kind in (*OF_THE_MODEL, *OF_THE_RUN):
        cells = [(kind, phase) for phase in PHASES]
        rows.append([kind, *(words.get(c) or f"({letters.get(impossible(*c) or '', '?')})" for c in cells)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join([*lines, *(f"({letter}) {reason}" for reason, letter in letters.items())])
