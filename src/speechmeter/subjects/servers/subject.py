"""What all servers share as subjects: an address, a key, options of the request, and one conversation after another."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar
from urllib.parse import urlsplit

from speechmeter.core.axes import Axis, Option
from speechmeter.core.errors import ConversationError, SubjectError
from speechmeter.core.live import CONNECTION, Clock, Conversation, Event, Live
from speechmeter.core.protocols import SOUND, Installed, Prepared
from speechmeter.core.types import Case
from speechmeter.subjects.common import installed
from speechmeter.subjects.servers.process import PORT, READY_PORT, ServerProcess, Start, version_of
from speechmeter.subjects.servers.secrets import Secret

_NOTICED_S, _POLL_S = 3.0, 0.05
"""How long after the loss of a connection it is known how its server ended, at most."""
KEY = Option(name="key", kind=str, help="name of the environment variable with the API key, such as OPENAI_API_KEY")
MODEL = Option(name="model", kind=str, help="name of the model on the server")
LANGUAGE = Option(name="language", kind=str, help="language of the audio, such as en")
PROMPT = Option(name="prompt", kind=str, help="prompt: text that the recogniser gets before the audio")
STARTING = (
    Option(name="start", kind=(str, list), runs_code=True,
           help="command that starts the server, for example `my-server --port {port}`; {port} is a free port, also in "
           "the address"),
    Option(name="ready", kind=str, default=READY_PORT,
           help="sign that the server is ready: port (it accepts connections), a path or URL that answers, or a text "
           "that it prints"),
    Option(name="start_timeout", kind=float, default=120.0, above=0, help="maximum seconds until the server is ready"),
    Option(name="environ", kind=dict, help="environment variables of the server"),
)  # fmt: skip
"""Options of every server."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a conversation asks a server for: where, with which key, and the options of the plan."""

    url: str
    secret: Secret
    options: Mapping[str, Any]

    def given(self, *names: str) -> dict[str, Any]:
        """Those of the options that were given, by name."""
        return {name: self.options[name] for name in names if self.options.get(name) is not None}


class ServerSubject(ABC):
    """`NAME:ADDRESS`. A dialect says what is special: its schemes, its own options, and how a conversation is made."""

    summary: str
    axes: tuple[Axis, ...] = ()
    asked: ClassVar[tuple[Option, ...]]
    """Options of the request."""
    schemes: ClassVar[tuple[str, ...]] = ("ws", "wss")
    example: ClassVar[str]
    runs_code = False
    takes = (SOUND,)

    @property
    def options(self) -> tuple[Option, ...]:
        """Those of the request, and of starting the server."""
        return (*self.asked, *STARTING)

    @abstractmethod
    def live(self, request: Request) -> Live:
        """How to converse with the server at `request.url`."""

    def installed(self) -> Installed:
        """Needs the packages of the extra `live`."""
        return installed("websockets", "httpx", "httpx_sse", extra="live")

    def check(self, case: Case) -> None:
        """The address must be one of this dialect, without a key in it; key and command must exist."""
        options = case.subject.options
        self.check_address(case.subject.source, may_choose=options.get("start") is not None)
        Secret.of(options.get("key"))
        if options.get("start") is not None:
            Start.command_of(options["start"])
            return
        for name in ("ready", "start_timeout", "environ"):
            if options.get(name) is not None:
                raise SubjectError(f"`{name}` applies only with `start`", fix="add `start`, or remove it")

    def check_address(self, address: str, *, may_choose: bool) -> None:
        """Raise SubjectError for an address that cannot be used."""
        if PORT in address and not may_choose:
            raise SubjectError(
                f"{address!r} has no port", fix=f"add the port number to the address ({PORT} works only with `start`)"
            )
        try:
            parts = urlsplit(address.replace(PORT, "1"))
            wrong = parts.scheme not in self.schemes or not parts.hostname or parts.port == 0
        except ValueError:
            wrong = True
        if wrong:
            raise SubjectError(f"{address!r} is not an address of a server", fix=f"for example {self.example}")
        if parts.username is not None or parts.password is not None:
            raise SubjectError(
                "the address contains a user name or a password",
                fix="remove it from the address, and use the option `key`",
            )

    def unavailable(self, case: Case) -> str | None:
        """A server is only spoken to."""
        return None if case.live is not None else "a server can only be measured live: add `pace: realtime`"

    def not_live(self, case: Case) -> str | None:
        """Always live."""
        return None

    def check_clients(self, case: Case) -> None:
        """Several clients share one server, which none of them can start."""
        if case.subject.options.get("start") is not None:
            raise SubjectError(
                "`start` starts a server for each client, so it cannot be combined with several `clients`",
                key="clients",
                fix="start the server yourself and give its address, or remove `clients`",
            )

    def prepare(self, case: Case, device: str) -> Prepared:
        """Start the server if a command is given. Nothing is connected before the first conversation."""
        options = {option.name: option.default for option in self.options} | dict(case.subject.options)
        secret = Secret.of(options.get("key"))
        server = _started(options, case.subject.source, secret)
        url = case.subject.source if server is None else server.url
        request = Request(url=url, secret=secret, options=options)
        live = self.live(request)
        notes = [*self.notes(request), *_facts(url, server)]
        if server is None:
            return Prepared(live=live, notes=tuple(notes), data_dependent=True)
        live = replace(live, converse=_watched(live.converse, server), processes=lambda: server.processes)
        return Prepared(live=live, notes=tuple(notes), close=server.stop, data_dependent=True)

    def notes(self, request: Request) -> tuple[str, ...]:
        """What a reader of the record must know."""
        return ("each conversation opens its own connection",)


def _started(options: Mapping[str, Any], url: str, secret: Secret) -> ServerProcess | None:
    if options.get("start") is None:
        return None
    environ = {str(name): str(value) for name, value in (options.get("environ") or {}).items()}
    start = Start(
        command=Start.command_of(options["start"]),
        ready=options["ready"],
        within_s=float(options["start_timeout"]),
        environ=environ,
    )
    return ServerProcess(start, url, secret)


def _facts(url: str, server: ServerProcess | None) -> list[str]:
    version = version_of(url)
    said = [f"server: {version}"] if version else []
    if server is None:
        return [*said, "the server was not started by this run: its memory and CPU time are not read"]
    return [*said, "the server is started anew in each round; memory and CPU time are those of all its processes"]


def _watched(converse: Callable[[Clock], Conversation], server: ServerProcess) -> Callable[[Clock], Conversation]:
    """Conversations whose errors say so if the server has ended."""
    return lambda clock: _Watched(converse(clock), server)


class _Watched:
    """A conversation with a server that was started here. Once it has ended, that is the error."""

    def __init__(self, conversation: Conversation, server: ServerProcess) -> None:
        self._conversation, self._server = conversation, server

    async def open(self) -> None:
        async with self._explaining():
            await self._conversation.open()

    async def send(self, pcm: Any) -> None:
        async with self._explaining():
            await self._conversation.send(pcm)

    async def finish(self) -> None:
        async with self._explaining():
            await self._conversation.finish()

    async def events(self) -> AsyncIterator[Event]:
        async with self._explaining():
            async for event in self._conversation.events():
                yield event

    async def close(self) -> None:
        await self._conversation.close()

    @asynccontextmanager
    async def _explaining(self) -> AsyncIterator[None]:
        try:
            yield
        except (ConversationError, OSError):
            await asyncio.sleep(_POLL_S)  # the end of a process is seen a moment after that of its connections
            for _ in range(round(_NOTICED_S / _POLL_S)):
                if not self._server.is_ending:
                    break
                await asyncio.sleep(_POLL_S)
            if (how := self._server.ended()) is None:
                raise
            raise ConversationError(how, kind=CONNECTION) from None
