"""Run one job in a fresh process under a guard; block on its pipe until it reports, ends or exceeds its time limit."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

from speechmeter.core import guard
from speechmeter.core.tail import Tail
from speechmeter.engine.measure import Outcome
from speechmeter.launch.carried import starting
from speechmeter.launch.child import Job, outcome_from_json
from speechmeter.launch.memory_limit import MemoryGroup, make_group
from speechmeter.launch.templates import TOKEN, ForkedGuard, Template, TemplateLostError, marked

CHILD = starting("speechmeter.launch.child")
"""How this interpreter becomes a measuring process."""
_GUARD_GRACE_S = 10.0
_ALLOCATION_FAILED = ("bad_alloc", "MemoryError", "annot allocate memory", "DefaultCPUAllocator")

Report = Callable[[str], None]


class MeasuringProcess:
    """One guarded process from start to end, started anew or forked from a template.

    `run` returns its outcome, whatever becomes of it. Where its template is lost it raises TemplateLostError.
    """

    def __init__(
        self,
        job: Job,
        environ: Mapping[str, str],
        log: Path,
        report: Report,
        python: str = sys.executable,
        template: Template | None = None,
        code: Sequence[str] = CHILD,
    ) -> None:
        self._job = job
        self._group: MemoryGroup | None = None
        self._command = (python, *code)
        self._template = template
        self._token = uuid.uuid4().hex if template is None else template.token
        self._environ = {**environ, TOKEN: self._token}
        self._log = log
        self._report = report
        self._phase = "start"
        self._outcome: Outcome | None = None
        self._exit: int | None = None
        self._left_behind = 0
        self._process: subprocess.Popen[bytes] | ForkedGuard | None = None
        self._waits_s = 0.0
        self._printed = Tail()

    def run(self, time_s: float | None, limit_s: float | None = None) -> Outcome:
        """Measure within `time_s` seconds, which is what is left of the case's limit `limit_s`.

        Time in which a live case waits for speech does not count.
        On KeyboardInterrupt everything below is killed before it passes on.
        """
        limit, shared = self._job.memory_bytes, 0 if self._template is None else self._template.own_bytes
        # what a forked process shares with its template counts for the template, which is in no group
        self._group = None if limit is None else make_group(max(1, limit - shared))
        killed_before = _oom_kills(self._group)
        try:
            in_time = self._measure(time_s)
            oom_killed = _oom_kills(self._group) > killed_before
        finally:
            self._printed.close()
            if self._group is not None:
                self._group.remove()
        if not in_time and not oom_killed:
            ran_on = "" if self._outcome is None else "; it was measured, but some of its processes did not end"
            speech = f" and {self._waits_s:.0f} s of speech" if self._waits_s else ""
            reason = f"exceeded the limit of {limit_s or time_s:g} s{speech} (phase: {self._phase}){ran_on}"
            outcome = Outcome(status="timeout", reason=reason)
        elif self._outcome is not None:
            outcome = self._outcome
            text = f"{self._left_behind} process(es) were left running and were killed"
            if oom_killed and self._group is not None and outcome.status == "ok":
                reason = "a process of the model was killed, because memory ran out"
                outcome = replace(outcome, status="oom", reason=reason)
            elif self._left_behind:
                outcome = replace(outcome, reason=outcome.reason or text, warnings=(*outcome.warnings, text))
        else:
            outcome = self._death(oom_killed=oom_killed)
        if outcome.status != "ok" and self._printed.kept:
            with contextlib.suppress(OSError):
                self._log.write_bytes(self._printed.kept)
        return outcome

    def stop(self) -> None:
        """End everything below it, from another thread: `run` returns."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def _measure(self, time_s: float | None) -> bool:
        """Start the process, listen until it ends, see that nothing is left; False when the time ran out."""
        read_fd, write_fd = os.pipe()
        try:
            process = self._process = self._spawn(write_fd)
        finally:
            os.close(write_fd)
            os.close(self._printed.write_fd)
        try:
            with os.fdopen(read_fd, "rb", buffering=0) as pipe:
                return self._listen(pipe, time_s)
        finally:
            # the guard kills all below it and leaves; if it was killed itself, its orphans are found by their token
            if process.poll() is None and self._exit is None:
                process.send_signal(signal.SIGTERM)
            try:
                code = process.wait(_GUARD_GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                code = process.wait()
            lost = self._outcome is None and isinstance(process, ForkedGuard) and process.lost
            if code != 0:
                guard.stop_then_kill(lambda: marked(self._token))
            self._printed.drain()
            if lost:
                raise TemplateLostError

    def _spawn(self, write_fd: int) -> subprocess.Popen[bytes] | ForkedGuard:
        child = [*self._command, str(write_fd)]
        group = "" if self._group is None else str(self._group.path)
        job = replace(self._job, memory_group=None if self._group is None else self._group.path.name)
        if self._template is not None:
            return self._template.start(job.to_json(), group, write_fd, self._printed.write_fd)
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__, str(write_fd), str(os.getpid()), group, *child],
            stdin=subprocess.PIPE,
            stdout=self._printed.write_fd,
            stderr=self._printed.write_fd,
            env=self._environ,
            pass_fds=[write_fd],
            start_new_session=True,
        )
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(job.to_json()).encode())
            process.stdin.close()
        return process

    def _listen(self, pipe: Any, time_s: float | None) -> bool:
        """Take messages until every writer is gone; False when the time ran out first."""
        deadline = None if time_s is None else monotonic() + time_s
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        poll.register(self._printed.read_fd, select.POLLIN)
        rest = b""
        while True:
            left_ms = None if deadline is None else max(0.0, (deadline - monotonic()) * 1000)
            ready = [fd for fd, _ in poll.poll(left_ms)]
            if not ready:
                return False
            if self._printed.read_fd in ready and not self._printed.read():
                poll.unregister(self._printed.read_fd)
            if pipe.fileno() not in ready:
                continue
            chunk = os.read(pipe.fileno(), 1 << 20)
            if not chunk:
                return True
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                # a model may write rubbish to any descriptor that it finds
                with contextlib.suppress(ValueError, KeyError, TypeError):
                    message = json.loads(line)
                    if "phase" in message:
                        self._phase = str(message["phase"])
                        self._report(self._phase)
                    elif "waits_s" in message and deadline is not None:
                        deadline += float(message["waits_s"])  # time in which it only waits for speech
                        self._waits_s = float(message["waits_s"])
                    elif "outcome" in message:
                        self._outcome = outcome_from_json(message["outcome"])
                    elif "exit" in message:
                        self._exit = int(message["exit"])
                        self._left_behind = int(message["left_behind"])

    def _death(self, *, oom_killed: bool) -> Outcome:
        code = self._exit
        tail = self._printed.last_line()
        if oom_killed and code in (None, -signal.SIGKILL):
            return Outcome(status="oom", reason=f"out of memory: the kernel killed the process (phase: {self._phase})")
        if any(sign in tail for sign in _ALLOCATION_FAILED):
            return Outcome(status="oom", reason=f"out of memory (phase: {self._phase}): {tail}")
        if code is None:
            how = "the process ended without a result"
        elif code < 0:
            names = {one.value: one.name for one in signal.Signals}  # most real-time signals have no name
            how = f"killed by {names.get(-code, f'signal {-code}')}"
        else:
            how = f"the interpreter ended with exit code {code}"
        return Outcome(status="crashed", reason=f"{how} (phase: {self._phase})" + (f": {tail}" if tail else ""))


def _oom_kills(group: MemoryGroup | None) -> int:
    """Processes that the kernel killed for lack of memory: those of the group, else on the whole machine."""
    if group is not None:
        return group.oom_kills()
    try:
        text = Path("/proc/vmstat").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("oom_kill ")), 0)
