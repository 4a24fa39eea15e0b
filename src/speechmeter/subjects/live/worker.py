"""An engine in a process of its own, for libraries that hold Python's lock while they decode.

PocketSphinx does: a thread that sends every 100 ms was up to 180 ms late beside it in one process.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing.connection import Connection
from threading import Lock
from time import perf_counter
from typing import Any

from speechmeter.subjects.live.hearing import Engine, Hear, Heard, hearing

_STARTING_S = 120.0
_ENDING_S = 5.0


class Workers:
    """Processes that each load a model once and hold one conversation after another.

    `make` is a function at the top level of a module; called with `arguments` in the new process, it loads the model
    and returns what makes an engine for a conversation.
    """

    def __init__(self, make: Callable[..., Callable[[], Engine]], *arguments: Any) -> None:
        self._make, self._arguments = make, arguments
        self._idle: list[_Worker] = []
        self._all: list[_Worker] = []
        self._lock = Lock()
        self._idle.append(self._start())

    def hear(self, chunks: Iterator[Any]) -> Iterator[Heard]:
        """One conversation with a worker that has no other; with a new one where all have."""
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        worker = worker or self._start()
        finished = False
        try:
            yield from worker.hear(chunks)
            finished = True
        finally:
            if finished:
                with self._lock:
                    self._idle.append(worker)
            else:  # it may be in the middle of an answer
                worker.end()

    def close(self) -> None:
        """End all processes."""
        for worker in self._all:
            worker.end()

    def _start(self) -> _Worker:
        worker = _Worker(self._make, self._arguments)
        self._all.append(worker)
        return worker


class _Worker:
    def __init__(self, make: Callable[..., Callable[[], Engine]], arguments: tuple[Any, ...]) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, make, arguments), daemon=True)
        self._process.start()
        theirs.close()
        if not self._pipe.poll(_STARTING_S):
            self.end()
            raise TimeoutError(f"the decoding process was not ready after {_STARTING_S:g} s")
        self._receive()

    def hear(self, chunks: Iterator[Any]) -> Iterator[Heard]:
        for samples in chunks:
            self._pipe.send(samples)
            yield from self._answer()
        self._pipe.send(None)
        yield from self._answer()

    def end(self) -> None:
        self._pipe.close()
        self._process.join(timeout=0.1)
        if self._process.is_alive():
            self._process.terminate()
            self._process.join(timeout=_ENDING_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join(timeout=_ENDING_S)

    def _answer(self) -> Iterator[Heard]:
        while (heard := self._receive()) is not None:
            yield heard

    def _receive(self) -> Heard | None:
        try:
            found: Heard | str | None = self._pipe.recv()
        except EOFError:
            self._process.join(timeout=_ENDING_S)  # before that there is no exit code
            code = self._process.exitcode
            raise RuntimeError(f"the decoding process ended unexpectedly with exit code {code}") from None
        if isinstance(found, str):
            raise RuntimeError(f"the decoding process failed: {found}")
        return found


def _serve(pipe: Connection, make: Callable[..., Callable[[], Engine]], arguments: tuple[Any, ...]) -> None:
    """Answer each chunk with what was heard, then None; a text is an error, after which the process ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group: the measuring process decides
    try:
        hear: Hear = hearing(make(*arguments))
        pipe.send(None)
        while True:
            for heard in hear(_chunks(pipe)):
                pipe.send(heard if heard.at_s is not None else replace(heard, at_s=perf_counter()))
            pipe.send(None)
    except (EOFError, BrokenPipeError, ConnectionResetError):  # the other end was closed
        return
    except BaseException as error:
        pipe.send(f"{type(error).__name__}: {error}")


def _chunks(pipe: Connection) -> Iterator[Any]:
    first = True
    while True:
        if not first:
            pipe.send(None)  # the chunk before was decoded, and everything that it made the engine say was sent
        first = False
        samples = pipe.recv()
        if samples is None:
            return
        yield samples
