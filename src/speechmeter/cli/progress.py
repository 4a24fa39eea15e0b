"""Progress of a run: a live line in a terminal, one plain line a case in a log file.

It is redrawn on events only. A bar that refreshes by itself would take a core's time from what is being measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.text import Text

from speechmeter.core.printable import one_line

if TYPE_CHECKING:
    from speechmeter.launch.recorder import Event

_BAR = 24
_REDRAW_S = 0.1


@contextmanager
def progress(console: Console) -> Iterator[Callable[[Event], None]]:
    """A watcher of a run that shows what is done, what is running, and how much time is left."""
    if not console.is_terminal:
        yield _Lines(console).watch
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield _Bar(console, live).watch


@contextmanager
def counting(console: Console, what: str) -> Iterator[Callable[[int, int], None]]:
    """A watcher of items that are read one by one: a bar in a terminal, nothing in a log file."""
    if not console.is_terminal:
        yield lambda done, of: None
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        drawn_s = [0.0]

        def watch(done: int, of: int) -> None:
            if monotonic() - drawn_s[0] > _REDRAW_S:
                drawn_s[0] = monotonic()
                live.update(Text(f"{what} {_bar(done, of)}"), refresh=True)

        yield watch


def _bar(done: int, of: int) -> str:
    filled = round(_BAR * done / max(1, of))
    return f"{'━' * filled}{'╌' * (_BAR - filled)} {done}/{of}"


def duration(seconds: float) -> str:
    """`42 s`, `3 min`, `1 h 20 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class _Lines:
    """One line for each finished (case, round)."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._begun = monotonic()
        self._printed: set[str] = set()

    def watch(self, event: Event) -> None:
        """Print a finished case, and once for each case that is left out, why."""
        if event.record is None:
            return
        if event.kind == "finished":
            from speechmeter.api.runs import outcome  # heavy, and loaded already by whoever measures

            width = len(str(event.total))
            parts = [f"[{event.done:{width}}/{event.total}] {event.case.label}"]
            parts += [f"round {event.round + 1}"] if event.round else []
            parts += [outcome(event.record), f"took {duration(event.record.wall_s)}"]
            parts += [f"about {duration(self.left_s(event))} left"] if event.done < event.total else []
            line = " · ".join(parts)
        else:
            line = f"left out: {event.record.case.subject.name}: {event.record.reason}"
        line = one_line(line)
        if line not in self._printed:
            self._printed.add(line)
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def left_s(self, event: Event) -> float:
        """Seconds left, if the rest goes at the pace so far."""
        return (monotonic() - self._begun) / max(1, event.done) * (event.total - event.done)


class _Bar(_Lines):
    """The same lines, and below them what is running."""

    def __init__(self, console: Console, live: Live) -> None:
        super().__init__(console)
        self._live = live

    def watch(self, event: Event) -> None:
        """Redraw."""
        super().watch(event)
        running = f"{event.case.label} · {event.phase or 'start'}" if event.kind != "finished" else ""
        left = f"about {duration(self.left_s(event))} left" if event.done else ""
        text = f"{_bar(event.done, event.total)}  {running}  {left}"
        self._live.update(Text(one_line(text), no_wrap=True, overflow="ellipsis"), refresh=True)
