"""Run one job in a fresh process under a guard; block on its pipe until it reports, dies or oversteps its limit."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

from speechmeter.engine.measure import Outcome
from speechmeter.launch import guard
from speechmeter.launch.job import Job, outcome_from_json

_TOKEN = "SPEECHMETER_PROCESS"
_GUARD_GRACE_S = 10.0
_LOG_TAIL_BYTES = 64 * 1024
_ALLOCATION_FAILED = ("bad_alloc", "MemoryError", "annot allocate memory", "DefaultCPUAllocator")

Report = Callable[[str], None]


class MeasuringProcess:
    """One guarded process from start to end. `run` returns its outcome, whatever becomes of it."""

    def __init__(
        self, job: Job, environ: Mapping[str, str], log: Path, report: Report, python: str = sys.executable
    ) -> None:
        self._job = job
        self._python = python
        self._token = uuid.uuid4().hex
        self._environ = {**environ, _TOKEN: self._token, "PYTHONSAFEPATH": "1"}
        self._log = log
        self._report = report
        self._phase = "start"
        self._outcome: Outcome | None = None
        self._exit: int | None = None
        self._left_behind = 0

    def run(self, time_s: float | None, limit_s: float | None = None) -> Outcome:
        """Measure within `time_s` seconds, which is what is left of the case's limit `limit_s`.

        On KeyboardInterrupt everything below is killed before it passes on.
        """
        killed_before = _oom_kills()
        read_fd, write_fd = os.pipe()
        try:
            process = self._spawn(write_fd)
        finally:
            os.close(write_fd)
        try:
            with os.fdopen(read_fd, "rb", buffering=0) as pipe:
                in_time = self._listen(pipe, time_s)
        finally:
            self._finish(process)
        if self._outcome is not None:
            outcome = self._with_left_behind(self._outcome)
        elif not in_time:
            outcome = Outcome(status="timeout", reason=f"over the limit of {limit_s or time_s:g} s, in {self._phase}")
        else:
            outcome = self._death(oom_killed=_oom_kills() > killed_before)
        self._keep_log(outcome)
        return outcome

    def _spawn(self, write_fd: int) -> subprocess.Popen[bytes]:
        child = [self._python, "-m", "speechmeter.launch.child", str(write_fd)]
        command = [sys.executable, "-I", "-S", guard.__file__, str(write_fd), str(os.getpid()), *child]
        with self._log.open("wb") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=self._environ,
                pass_fds=[write_fd],
                start_new_session=True,
            )
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(self._job.to_json()).encode())
            process.stdin.close()
        return process

    def _listen(self, pipe: Any, time_s: float | None) -> bool:
        """Take messages until every writer is gone; False when the time ran out first."""
        deadline = None if time_s is None else monotonic() + time_s
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        rest = b""
        while True:
            left_ms = None if deadline is None else max(0.0, (deadline - monotonic()) * 1000)
            if not poll.poll(left_ms):
                return False
            chunk = os.read(pipe.fileno(), 1 << 20)
            if not chunk:
                return True
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
            if "phase" in message:
                self._phase = str(message["phase"])
                self._report(self._phase)
            elif "outcome" in message:
                self._outcome = outcome_from_json(message["outcome"])
            elif "exit" in message:
                self._exit = int(message["exit"])
                self._left_behind = int(message["left_behind"])
        except (ValueError, KeyError, TypeError):  # a model may write rubbish to any descriptor it finds
            return

    def _finish(self, process: subprocess.Popen[bytes]) -> None:
        """The guard kills all below it and leaves; if the guard itself was killed, find its orphans by their token."""
        if process.poll() is None and self._exit is None:
            process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(_GUARD_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        if code != 0:
            _kill_marked(self._token)

    def _death(self, *, oom_killed: bool) -> Outcome:
        code = self._exit
        tail = self._last_output()
        if code == -signal.SIGKILL and oom_killed:
            return Outcome(status="oom", reason=f"killed by the kernel for lack of memory, in {self._phase}")
        if any(sign in tail for sign in _ALLOCATION_FAILED):
            return Outcome(status="oom", reason=f"out of memory in {self._phase}: {tail}")
        if code is None:
            how = "the process vanished"
        elif code < 0:
            how = f"killed by {signal.Signals(-code).name}"
        else:
            how = f"the interpreter ended with exit code {code}"
        return Outcome(status="crashed", reason=f"{how}, in {self._phase}" + (f": {tail}" if tail else ""))

    def _with_left_behind(self, outcome: Outcome) -> Outcome:
        if not self._left_behind:
            return outcome
        text = f"{self._left_behind} process(es) were left running and were killed"
        return replace(outcome, reason=outcome.reason or text, warnings=(*outcome.warnings, text))

    def _last_output(self) -> str:
        lines = [line.strip() for line in self._tail().decode(errors="replace").splitlines() if line.strip()]
        return lines[-1][:200] if lines else ""

    def _tail(self) -> bytes:
        with contextlib.suppress(OSError), self._log.open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - _LOG_TAIL_BYTES))
            return log.read()
        return b""

    def _keep_log(self, outcome: Outcome) -> None:
        """The end of the output of a failed case stays beside the records; that of a sound one goes."""
        tail = b"" if outcome.status == "ok" else self._tail()
        with contextlib.suppress(OSError):
            if tail:
                self._log.write_bytes(tail)
            else:
                self._log.unlink()


def _oom_kills() -> int:
    try:
        text = Path("/proc/vmstat").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("oom_kill ")), 0)


def _kill_marked(token: str) -> None:
    mark = f"{_TOKEN}={token}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)
