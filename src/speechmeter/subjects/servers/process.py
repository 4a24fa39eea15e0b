"""A server that a case starts: under a guard, on a free port, awaited until it is ready, and ended whole."""

from __future__ import annotations

import json
import os
import re
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from threading import Event, Thread
from time import monotonic, sleep
from urllib.error import URLError
from urllib.parse import urljoin, urlsplit
from urllib.request import ProxyHandler, build_opener

from speechmeter.core import guard
from speechmeter.core.errors import SubjectError
from speechmeter.core.tail import Tail
from speechmeter.subjects.servers.secrets import Secret

PORT = "{port}"
"""In a command and in an address: a port that is free when the server is started."""
READY_PORT = "port"
_POLL_S = 0.1
_ASKING_S, _MOST_ASKING_S = 2.0, 5.0
_ENDING_S = 5.0
"""How long a server may take to end by itself before it is killed."""
_HTTP = {"ws": "http", "wss": "https"}


@dataclass(frozen=True, kw_only=True)
class Start:
    """How a server is started, and how long it may take until it is `ready`: `port`, a URL or its path, or a text that
    it prints.
    """

    command: tuple[str, ...]
    ready: str = READY_PORT
    within_s: float = 120.0
    environ: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def command_of(cls, given: str | Sequence[str]) -> tuple[str, ...]:
        """The command with the path of its program. SubjectError where there is none. No shell is involved."""
        try:
            words = shlex.split(given) if isinstance(given, str) else [str(word) for word in given]
        except ValueError as error:
            raise SubjectError(f"`start` cannot be read: {error}", fix="close every quote") from None
        if not words:
            raise SubjectError("`start` is empty", fix="for example `start: my-server --port {port}`")
        program = shutil.which(words[0])
        if program is None:
            raise SubjectError(f"there is no program {words[0]!r}", fix="install it, or give its whole path in `start`")
        return (os.path.abspath(program), *words[1:])  # noqa: PTH100 - a link keeps its name: that of a venv decides


class ServerProcess:
    """A running server, with everything that it starts. Ready when made; `stop` ends it."""

    def __init__(self, start: Start, url: str, secret: Secret) -> None:
        self._secret, self._tail = secret, Tail()
        self._exit: int | None = None
        port = _free_port() if PORT in url else urlsplit(url).port or 0
        self.url = url.replace(PORT, str(port))
        self._host = urlsplit(self.url).hostname or "127.0.0.1"
        self._port = port
        if _answers(self._host, port):
            raise SubjectError(
                f"another server already listens on port {port}", fix=f"stop it, or write {PORT} for a free port"
            )
        self._printed, self._looked_for = Event(), start.ready
        self._spawn(start)
        try:
            self._await_ready(start)
        except BaseException:
            self.stop()
            raise

    @property
    def processes(self) -> list[int]:
        """The server and all that it started."""
        return guard.below(self._guard.pid)

    def ended(self) -> str | None:
        """How the server ended, with the last line that it printed; None while it runs."""
        if not self._reported() and self._guard.poll() is None:
            return None
        return _with_line(f"the server {_way(self._exit)}", self._last_line())

    @property
    def is_ending(self) -> bool:
        """Whether the server has ended and its guard has not yet said how: it first ends what the server left."""
        return self.ended() is None and self._command not in self.processes

    def stop(self) -> None:
        """End it: it is asked first, then killed with everything that it started."""
        if self._guard.poll() is None:
            with suppress(OSError):
                os.kill(self._command, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._guard.wait(_ENDING_S)
        if self._guard.poll() is None:
            self._guard.send_signal(signal.SIGTERM)  # the guard kills all that is below it
            with suppress(subprocess.TimeoutExpired):
                self._guard.wait(_ENDING_S)
        if self._guard.poll() is None:
            guard.stop_then_kill(lambda: guard.below(self._guard.pid))
            self._guard.kill()
            self._guard.wait()
        self._reader.join(_ENDING_S)
        self._reported()
        os.close(self._messages)

    def _spawn(self, start: Start) -> None:
        command = [word.replace(PORT, str(self._port)) for word in start.command]
        self._messages, write_fd = os.pipe()
        os.set_blocking(self._messages, False)
        try:
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", guard.__file__, str(write_fd), str(os.getpid()), "", *command],
                stdin=subprocess.DEVNULL,
                stdout=self._tail.write_fd,
                stderr=self._tail.write_fd,
                env={**os.environ, **start.environ},
                pass_fds=[write_fd],
                start_new_session=True,
            )
        finally:
            os.close(write_fd)
            os.close(self._tail.write_fd)
        self._reader = Thread(target=self._read, name="speechmeter-server-output", daemon=True)
        self._reader.start()
        self._command = self._first_child()

    def _first_child(self) -> int:
        deadline = monotonic() + _ENDING_S
        while monotonic() < deadline and self._guard.poll() is None:
            if found := guard.below(self._guard.pid):
                return found[0]
            sleep(0.01)
        return self._guard.pid

    def _read(self) -> None:
        """Keep the end of the output, and look for the text that says that it is ready."""
        line = b""
        while True:
            select.select([self._tail.read_fd], [], [])
            before = self._tail.kept
            goes_on = self._tail.read()
            fresh = self._tail.kept[len(before) :] if self._tail.kept.startswith(before) else self._tail.kept
            line = (line + fresh)[-4096:]
            if self._looked_for.encode() in line:
                self._printed.set()
            if not goes_on:
                self._tail.close()
                return

    def _await_ready(self, start: Start) -> None:
        deadline = monotonic() + start.within_s
        while not self._is_ready(start.ready):
            if (how := self.ended()) is not None:
                raise SubjectError(
                    f"{how} before it was ready", fix="run the command of `start` in a terminal to see why"
                )
            if monotonic() > deadline:
                line = self._secret.hidden(self._tail.last_line())
                raise SubjectError(
                    f"the server was not ready after {start.within_s:g} s"
                    + (f"; its last line: {line}" if line else ""),
                    fix="check `ready`, or raise `start_timeout`",
                )
            sleep(_POLL_S)

    def _is_ready(self, ready: str) -> bool:
        if ready == READY_PORT:
            return _answers(self._host, self._port)
        if ready.startswith(("/", "http://", "https://")):
            return ask(urljoin(http_root(self.url), ready.replace(PORT, str(self._port)))) is not None
        return self._printed.is_set()

    def _last_line(self) -> str:
        return self._secret.hidden(self._tail.last_line())

    def _reported(self) -> bool:
        """Whether the guard has reported how the server ended."""
        with suppress(OSError, ValueError, KeyError):
            if text := os.read(self._messages, 4096):
                self._exit = int(json.loads(text.splitlines()[0])["exit"])
        return self._exit is not None


def http_root(url: str) -> str:
    """The root of a server's HTTP address, whatever it speaks otherwise."""
    parts = urlsplit(url)
    return f"{_HTTP.get(parts.scheme, parts.scheme)}://{parts.netloc}/"


def ask(url: str) -> bytes | None:
    """The beginning of the answer to a GET; None where there is none in time, or an error."""
    found: list[bytes] = []

    def asked() -> None:
        asking = build_opener(ProxyHandler({}))  # a proxy of the environment may know another 127.0.0.1
        failing = suppress(URLError, OSError, ValueError, HTTPException)
        with failing, asking.open(url, timeout=_ASKING_S) as response:
            found.append(bytes(response.read(1 << 20)))

    # a time limit of the socket is one for each piece: an answer that comes a byte at a time would never reach it
    thread = Thread(target=asked, daemon=True, name="asking")
    thread.start()
    thread.join(_MOST_ASKING_S)
    return found[0] if found else None


def version_of(url: str) -> str:
    """What a server says it is, by `/version` or `/openapi.json`; empty where it says nothing."""
    root = http_root(url)
    if not root.startswith("http"):
        return ""
    for path, keys in (("version", ("version",)), ("openapi.json", ("info", "version"))):
        with suppress(ValueError, KeyError, TypeError):
            found = json.loads(ask(root + path) or b"")
            title = found["info"].get("title", "") if path == "openapi.json" else ""
            for key in keys:
                found = found[key]
            if isinstance(found, str) and title != "FastAPI":  # the default of that framework
                return " ".join(re.sub(r"[^\w.+ -]", " ", f"{title} {found}").split())[:80]
    return ""


def _way(code: int | None) -> str:
    if code is None:
        return "was killed"
    return f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"


def _with_line(what: str, line: str) -> str:
    return f"{what}; its last line: {line}" if line else what


def _free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=_ASKING_S):
            return True
    except OSError:
        return False
