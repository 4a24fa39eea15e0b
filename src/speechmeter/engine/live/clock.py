"""Clocks for conversations: the real one, and a virtual one that jumps from moment to moment.

Both come with an event loop of their own. The virtual loop replaces waiting itself, so that `asyncio.sleep`, queues and
time-outs go by the virtual time as well, and the order of what happens is the same every time.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
import selectors
from collections.abc import Callable, Coroutine
from heapq import heappop, heappush
from itertools import count
from time import perf_counter
from typing import Any, TypeVar

from speechmeter.core.live import Clock

_Result = TypeVar("_Result")


class RealClock:
    """Seconds of `perf_counter`, which all processes of a Linux machine share."""

    def now(self) -> float:
        """Seconds since a fixed moment."""
        return perf_counter()

    async def sleep_until(self, moment_s: float) -> None:
        """Return at that moment, or some 0.1 ms after it. Other tasks get a turn also where it has passed."""
        left_s = moment_s - perf_counter()
        await asyncio.sleep(max(0.0, left_s))
        while (left_s := moment_s - perf_counter()) > 0:  # the loop may wake a timer a clock tick early
            await asyncio.sleep(left_s)


class VirtualClock:
    """The time of a virtual loop, from 0 on. It passes only while every task waits."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def now(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._loop.time()

    async def sleep_until(self, moment_s: float) -> None:
        """Return at exactly that moment, or after a turn of the other tasks where it has passed."""
        if moment_s <= self._loop.time():
            await asyncio.sleep(0)
            return
        reached = self._loop.create_future()
        timer = self._loop.call_at(moment_s, _set, reached)
        try:
            await reached
        finally:
            timer.cancel()


def run(work: Callable[[Clock], Coroutine[Any, Any, _Result]], *, virtual: bool = False) -> _Result:
    """The result of `work` on a clock and a loop of its own, with no task left behind."""
    loop: asyncio.AbstractEventLoop = _VirtualLoop() if virtual else _precise_loop()
    clock: Clock = VirtualClock(loop) if virtual else RealClock()
    try:
        return loop.run_until_complete(work(clock))
    finally:
        try:
            _cancel_all(loop)
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            loop.close()


def _set(reached: asyncio.Future[None]) -> None:
    if not reached.done():
        reached.set_result(None)


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))


def _precise_loop() -> asyncio.AbstractEventLoop:
    """A loop whose timers are as fine as the kernel's: epoll alone rounds every wait up to a whole millisecond."""
    return asyncio.SelectorEventLoop(_FineSelector() if hasattr(selectors, "EpollSelector") else None)


if hasattr(selectors, "EpollSelector"):  # Linux

    class _FineSelector(selectors.EpollSelector):
        """Waits with `select`, which takes microseconds, for the epoll object itself, which is a file like any other.

        So there is no limit on the number of connections, and nothing spins.
        """

        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            if timeout is not None and timeout > 0:
                with contextlib.suppress(InterruptedError):
                    select.select([self.fileno()], [], [], timeout)
                timeout = 0
            return super().select(timeout)


class _JumpingSelector(selectors.SelectSelector):
    """Never waits: where the loop would, it has the time jump."""

    def __init__(self) -> None:
        super().__init__()
        self.jump: Callable[[], None] = lambda: None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if not found and (timeout is None or timeout > 0):
            self.jump()
        return found


class _VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time. Timers of one moment run in the order in which they were set."""

    def __init__(self) -> None:
        selector = _JumpingSelector()
        super().__init__(selector)
        selector.jump = self._jump
        self._now_s = 0.0
        self._turns = count()
        self._timers: list[tuple[float, int, asyncio.TimerHandle, Callable[[], None]]] = []

    def time(self) -> float:
        """Virtual seconds."""
        return self._now_s

    def call_at(  # type: ignore[override]  # the stub names the types of args, which Python 3.10 cannot
        self, when: float, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        """As any loop's, in virtual time and to the exact moment."""
        handle = asyncio.TimerHandle(when, callback, args, self, context)

        def fire() -> None:
            if not handle.cancelled():
                callback(*args)

        def due() -> None:
            self.call_soon(fire, context=context)

        heappush(self._timers, (when, next(self._turns), handle, due))
        return handle

    def _jump(self) -> None:
        while self._timers:
            when, _, handle, due = heappop(self._timers)
            if not handle.cancelled():
                self._now_s = max(self._now_s, when)
                due()
                return
        raise RuntimeError(
            "the simulated time stopped: all tasks wait for each other or for a thread, and none for a moment in time"
        )
