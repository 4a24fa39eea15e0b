"""A program and the lines that go to it and come from it. Whatever it does, no call waits longer than it may.

Its standard error is read along, so that it never has to wait, and the end of it is kept for messages.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any

from speechmeter.core.errors import SubjectError
from speechmeter.core.guard import below, stop_then_kill
from speechmeter.core.printable import one_line
from speechmeter.core.tail import Tail

MOST_LINE_BYTES = 16 * 2**20
"""A longer line is no answer."""
_CHUNK = 1 << 16
_ENDING_S = 2.0
"""How long a runner may take to end by itself, and once more after it was asked to."""
_POLL_S = 0.02
_SHOWN = 200
_HANDS_ON = "try it by hand: {command}"


class RunnerError(SubjectError):
    """What a runner did wrong."""


class Channel:
    """A running program. `write` sends a line, `read` waits for one; both raise RunnerError and end the program."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        self._command = list(command)
        self._tail = Tail()
        self._open_tail = self._open_output = True
        self._buffer = bytearray()
        try:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._tail.write_fd,
                env={**os.environ, **environ},
                start_new_session=True,
            )
        except OSError as error:
            self._tail.close()
            raise SubjectError(
                f"the runner cannot be started: {error.strerror}: {self._command[0]}",
                fix="make it executable (chmod +x), and give it a first line such as #!/bin/sh if it is a script",
            ) from error
        finally:
            os.close(self._tail.write_fd)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin.fileno(), self._process.stdout.fileno()
        for fd in (self._stdin, self._stdout):
            os.set_blocking(fd, False)

    def write(self, line: bytes, within_s: float, waiting_for: str) -> None:
        """Send a line. What the runner prints meanwhile is kept, up to the length of a line."""
        self._check()
        deadline = monotonic() + within_s
        left = memoryview(line)
        while left:
            with suppress(BlockingIOError):
                try:
                    left = left[os.write(self._stdin, left) :]
                except BrokenPipeError:
                    raise self._ended(waiting_for) from None
            if left and not self._wait(deadline, writing=True):
                raise self.failed(f"the runner read nothing for {within_s:g} s ({waiting_for})")

    def read(self, within_s: float, waiting_for: str) -> dict[str, Any]:
        """The next line, which must be a JSON object."""
        self._check()
        deadline = monotonic() + within_s
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > MOST_LINE_BYTES:
                raise self.failed(f"the runner printed {MOST_LINE_BYTES >> 20} MiB without an end of line")
            if self._open_output and not self._wait(deadline):
                raise self.failed(f"the runner did not answer within {within_s:g} s ({waiting_for})")
            if not self._open_output or not self._take():
                raise self._ended(waiting_for)
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            shown = one_line(line[: 4 * _SHOWN].decode(errors="replace"))[:_SHOWN]
            raise self.failed(
                f"the runner printed a line that is no JSON object ({waiting_for}): {shown!r}",
                fix="print only answers to standard output, and everything else to standard error",
            )
        return found

    @property
    def has_ended(self) -> bool:
        """Whether it was ended, by itself or by us."""
        return self._process.returncode is not None

    def failed(self, reason: str, fix: str = "") -> RunnerError:
        """The error to raise, with the last line on standard error; the runner is ended."""
        self.end(grace_s=0.0)
        line = one_line(self._tail.last_line())
        return RunnerError(
            f"{reason}; its last line on standard error: {line}" if line else reason,
            fix=fix or _HANDS_ON.format(command=" ".join(self._command)),
        )

    def end(self, grace_s: float = _ENDING_S) -> None:
        """End it, and all that it started. It may do so by itself first."""
        process = self._process
        if self.has_ended:
            return
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()  # it reads the end of its input
        if not self._ends_within(grace_s):
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGTERM)
            self._ends_within(grace_s)
        stop_then_kill(lambda: below(process.pid))
        with suppress(OSError):  # not waited for yet, so the number of its group is nobody else's
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        if self._open_tail:
            self._tail.drain()
            self._tail.close()
            self._open_tail = False

    def _check(self) -> None:
        """Raise RunnerError where it is used after it was ended: its pipes are closed."""
        if self.has_ended:
            raise RunnerError("the runner has ended after an earlier error")

    def _ends_within(self, seconds: float) -> bool:
        """Whether it ends; what it still prints is thrown away."""
        deadline = monotonic() + seconds
        while True:
            if os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
                return True
            if monotonic() >= deadline:
                return False
            self._buffer.clear()
            if self._wait(min(deadline, monotonic() + _POLL_S)):
                self._take()

    def _wait(self, deadline: float, *, writing: bool = False) -> bool:
        """Wait until something can be read or written; False when the time is over. Errors are read on the way."""
        while True:
            poll = select.poll()
            if self._open_output and len(self._buffer) <= MOST_LINE_BYTES:
                poll.register(self._stdout, select.POLLIN)
            if self._open_tail:
                poll.register(self._tail.read_fd, select.POLLIN)
            if writing:
                poll.register(self._stdin, select.POLLOUT)
            left_ms = (deadline - monotonic()) * 1000
            ready = {fd for fd, _ in poll.poll(max(0.0, left_ms))}
            if not ready:
                return False
            if self._tail.read_fd in ready:
                self._read_errors()
            if writing and self._stdout in ready and self._stdin not in ready:
                writing = self._take()  # it may wait for us to read before it reads itself
                if not writing:
                    return True
                continue
            if ready & {self._stdout, self._stdin}:
                return True
            if left_ms <= 0:
                return False

    def _take(self) -> bool:
        """What is there of its output; False once it has closed it."""
        try:
            chunk = os.read(self._stdout, _CHUNK)
        except BlockingIOError:
            return True
        self._buffer += chunk
        self._open_output = bool(chunk)
        return self._open_output

    def _read_errors(self) -> None:
        if self._open_tail and not self._tail.read():
            self._tail.close()
            self._open_tail = False

    def _ended(self, waiting_for: str) -> RunnerError:
        """What to say of a runner that closed its output or its input."""
        ended = self._ends_within(_ENDING_S)
        self.end()
        code = self._process.returncode
        if not ended:
            how = "closed its output"
        elif code < 0:
            names = {one.value: one.name for one in signal.Signals}
            how = f"was killed by {names.get(-code, f'signal {-code}')}"
        else:
            how = f"ended with exit code {code}"
        return self.failed(f"the runner {how} ({waiting_for})")
