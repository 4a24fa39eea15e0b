"""The templates of a round, as the launcher holds them: one for each environment that measuring processes need."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from speechmeter.core import guard, plugins
from speechmeter.core.protocols import ForkableSubject
from speechmeter.core.types import Case
from speechmeter.launch.carried import starting
from speechmeter.launch.child import Job

TOKEN = "SPEECHMETER_PROCESS"
"""The variable by which processes are found that lost their guard."""
_MOST = 8
"""Templates alive at a time. Each holds the memory of its libraries, mostly shared with what is forked from it."""
_GONE = -9
_FORK_S = 60.0
"""How long a fork may take before its template counts as lost: it may be stopped, or out of memory."""


class TemplateLostError(Exception):
    """A template ended while it was needed. What it was needed for can be done by a new process."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What a template is started with; processes of the same kind are forked from the same one."""

    python: str
    code: tuple[str, str]
    environ: tuple[tuple[str, str], ...]
    cores: int | None
    modules: tuple[str, ...]


class Template:
    """One template process. Raises TemplateLostError as soon as it is needed and gone."""

    def __init__(self, kind: Kind, job: Job) -> None:
        self.token = uuid.uuid4().hex
        self.own_bytes = 0
        self._socket, theirs = socket.socketpair()
        self._rest = b""
        with theirs:
            self._process = subprocess.Popen(
                [kind.python, *kind.code, str(theirs.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**dict(kind.environ), TOKEN: self.token},
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        with contextlib.suppress(OSError):  # gone already: `wait_ready` says so
            self._send({"job": job.to_json(), "modules": kind.modules})

    def wait_ready(self, time_s: float | None) -> None:
        """Wait until its libraries are imported. Raises TemplateLostError where it refuses, or takes too long.

        What an import left running would be shared by processes that are to have nothing in common.
        """
        try:
            answer = self.answer(time_s)
        except subprocess.TimeoutExpired:
            raise TemplateLostError from None
        if "ready" not in answer:
            raise TemplateLostError(answer.get("refused", ""))
        if left := [pid for pid in marked(self.token) if pid != self._process.pid]:
            raise TemplateLostError(f"importing its libraries left {len(left)} process(es) running")
        self.own_bytes = int(answer["ready"])

    def start(self, job: Mapping[str, Any], group: str, message_fd: int, printed_fd: int) -> ForkedGuard:
        """Fork the guard of a job."""
        try:
            self._socket.settimeout(_FORK_S)
            socket.send_fds(self._socket, [b"\n"], [message_fd, printed_fd])
            self._send({"job": job, "group": group})
            return ForkedGuard(self, int(self.answer(_FORK_S)["guard"]))
        except (OSError, subprocess.TimeoutExpired) as error:
            raise TemplateLostError from error

    def _send(self, message: Mapping[str, Any]) -> None:
        self._socket.sendall((json.dumps(message) + "\n").encode())

    def answer(self, time_s: float | None) -> dict[str, Any]:
        """The next answer. Raises TimeoutExpired, or TemplateLostError where there will be none."""
        deadline = None if time_s is None else monotonic() + time_s
        while b"\n" not in self._rest:
            self._socket.settimeout(None if deadline is None else max(0.001, deadline - monotonic()))
            try:
                chunk = self._socket.recv(4096)
            except TimeoutError:
                raise subprocess.TimeoutExpired("template", time_s or 0.0) from None
            except OSError:
                chunk = b""
            if not chunk:
                raise TemplateLostError
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        """End it, and with it whatever was forked from it, or was started by an import."""
        self._socket.close()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        guard.stop_then_kill(lambda: marked(self.token))


class ForkedGuard:
    """A guard that a template forked, with what `subprocess.Popen` offers of a guard that was started anew.

    `lost` says that its template ended before it did, and so ended it.
    """

    def __init__(self, template: Template, pid: int) -> None:
        self.pid = pid
        self.lost = False
        self._template = template
        self._code: int | None = None

    def poll(self) -> int | None:
        """The exit code, None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0.0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """The exit code. Raises TimeoutExpired."""
        if self._code is None:
            try:
                self._code = int(self._template.answer(timeout)["ended"])
            except TemplateLostError:
                self._code, self.lost = _GONE, True
        return self._code

    def send_signal(self, sig: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, sig)

    def kill(self) -> None:
        """Kill it, unless it has ended, and its template with it, which has not told of its end."""
        self.send_signal(-_GONE)
        self._template.close()


class Templates:
    """Those of one round. A kind that cannot be forked is remembered, so that it is tried once a round."""

    def __init__(self) -> None:
        self._round = -1
        self._held: dict[Kind, Template | None] = {}
        self._used: dict[Kind, Job] = {}

    def begin(self, round_: int, time_s: float | None) -> None:
        """End those of another round: layout of memory and hashes are to vary from round to round.

        What the last round needed is started anew, all at once: nothing is measured yet, and imports share the cores.
        """
        if round_ == self._round:
            return
        self.close()
        self._round, used, self._used = round_, self._used, {}
        for kind, job in used.items():
            self._start(kind, job)
        for kind in used:
            self._wait_ready(kind, time_s)

    def get(self, kind: Kind, job: Job, time_s: float | None) -> Template | None:
        """The template of a kind, started where there is none; None where there can be none."""
        if kind not in self._held:
            while len(alive := [one for one, template in self._held.items() if template is not None]) >= _MOST:
                self.end(alive[0])
            self._start(kind, job)
            self._wait_ready(kind, time_s)
        template = self._held[kind]
        if template is not None:
            self._used[kind] = job
        return template

    def _start(self, kind: Kind, job: Job) -> None:
        self._held[kind] = None
        with contextlib.suppress(OSError):  # no more processes, say: the measuring process tells of it
            self._held[kind] = Template(kind, job)

    def _wait_ready(self, kind: Kind, time_s: float | None) -> None:
        template = self._held[kind]
        if template is None:
            return
        try:
            template.wait_ready(time_s)
        except TemplateLostError:
            template.close()
            self._held[kind] = None

    def end(self, kind: Kind) -> None:
        """End one; another is started when it is needed again."""
        self._used.pop(kind, None)
        template = self._held.pop(kind, None)
        if template is not None:
            template.close()

    def close(self) -> None:
        """End all."""
        while self._held:
            _, template = self._held.popitem()
            if template is not None:
                template.close()


def kind_of(case: Case, python: str, environ: Mapping[str, str], carried: Path | None = None) -> Kind | None:
    """The kind of template that a process of this case is forked from; None where it is to be started anew.

    Another interpreter finds this package in the folder `carried`.
    """
    subject = plugins.subject(case.subject.plugin)
    if sys.platform != "linux" or case.device.is_cuda or case.live is not None:
        return None
    try:
        modules = subject.libraries(case) if isinstance(subject, ForkableSubject) else ()
    except Exception:  # a model whose files are gone by now, say: its process tells of it, and the run goes on
        return None
    if not modules:
        return None
    code = starting("speechmeter.launch.template", carried)
    return Kind(
        python=python, code=code, environ=tuple(sorted(environ.items())), cores=case.axes.cores, modules=modules
    )


def marked(token: str) -> list[int]:
    """The processes that have the token in their environment."""
    mark = f"{TOKEN}={token}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
    return found
