"""Progress of a run: a live line in a terminal or a notebook, one plain line a case in a log file.

It is redrawn on events only. A bar that refreshes by itself would take a core's time from what is being measured.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from speechmeter.api.durations import duration, left_words
from speechmeter.core.printable import one_line
from speechmeter.core.types import FAILED

if TYPE_CHECKING:
    from speechmeter.launch.forecast import Forecast
    from speechmeter.launch.recorder import Event, Watcher

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
def shown_progress(wanted: bool | None) -> Iterator[Watcher]:
    """A watcher of a run that a Python program starts; where nobody is asked (None), only a notebook shows progress."""
    handle = _display_of_notebook() if wanted is not False else None
    if handle is not None:
        cell = _Output(handle)
        try:
            yield cell.watch
        finally:
            cell.end()
    elif wanted:
        with progress(Console(stderr=True)) as watch:
            yield watch
    else:
        yield lambda event: None


def _display_of_notebook() -> Any:
    """An output of the cell that is running, which can be updated; None outside of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if getattr(shell, "kernel", None) is None:  # IPython in a terminal has none
        return None
    display = ipython.display if ipython is not None else None
    return None if display is None else display.DisplayHandle()


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


class _Lines:
    """One line for each finished (case, round)."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._begun = monotonic()
        self._printed: set[str] = set()
        self._left: Forecast | None = None
        """As it was when the last case finished: while one is measured, nothing is computed here."""

    def watch(self, event: Event) -> None:
        """Print a finished case, and once for each case that is left out, why."""
        line = self.line(event)
        if line and line not in self._printed:
            self._printed.add(line)
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def line(self, event: Event) -> str:
        """The line for an event; empty while a case is running."""
        if event.record is None:
            return ""
        if event.kind == "finished":
            from speechmeter.report.lines import outcome  # heavy, and loaded already by whoever measures

            width = len(str(event.total))
            parts = [f"[{event.done:{width}}/{event.total}] {event.case.label}"]
            parts += [f"round {event.round + 1}"] if event.round else []
            parts += [outcome(event.record), f"took {duration(event.record.wall_s)}"]
            parts += [self.left(event)] if event.done < event.total else []
            line = " · ".join(parts)
        else:
            line = f"left out: {event.record.case.subject.name}: {event.record.reason}"
        return one_line(line)

    def below(self, event: Event) -> str:
        """How much is done, what is running, and how much time is left."""
        # the phase first: a terminal cuts long lines at their end
        running = f"{event.phase or 'start'} · {event.case.label}" if event.kind != "finished" else ""
        left = self.left(event) if event.done else ""
        return one_line(f"{_bar(event.done, event.total)}  {running}  {left}")

    def left(self, event: Event) -> str:
        """How much time is left: as it was last forecast, or else if the rest goes at the pace so far."""
        if event.left is not None:
            self._left = event.left()
        if self._left is not None:
            return left_words(self._left)
        pace_s = (monotonic() - self._begun) / max(1, event.done)
        return f"about {duration(pace_s * (event.total - event.done))} left"


class _Bar(_Lines):
    """The same lines, and below them what is running.

    After the first round, the figures so far take the place of the lines: their intervals tighten from round to round.
    """

    def __init__(self, console: Console, live: Live) -> None:
        super().__init__(console)
        self._live = live
        self._figures: RenderableType | None = None

    def watch(self, event: Event) -> None:
        """Redraw."""
        record = event.record
        if record is None or event.kind != "finished" or record.status in FAILED or not event.round:
            super().watch(event)
        if event.round and (event.kind == "finished" or self._figures is None):
            from speechmeter.report.progress import so_far  # as heavy, and loaded already, as in `line`

            self._figures = so_far(event.known(), self._console)
        below = Text(self.below(event), no_wrap=True, overflow="ellipsis")
        self._live.update(below if self._figures is None else Group(self._figures, below), refresh=True)


class _Output(_Lines):
    """An output of a notebook that is replaced: what is running, below the cases that were left out or failed."""

    def __init__(self, handle: Any) -> None:
        super().__init__(Console())
        self._handle = handle
        self._kept: dict[str, None] = {}
        self._done = self._total = 0
        self._shown = False

    def watch(self, event: Event) -> None:
        """Replace what is shown."""
        self._done, self._total = event.done, event.total
        if event.kind == "left out" or (event.record is not None and event.record.status in FAILED):
            self._kept[self.line(event)] = None
        self._show(self.below(event))

    def end(self) -> None:
        """Leave one line about the whole."""
        if self._shown:  # nothing is, where the run was refused
            self._show(f"{self._done} of {self._total} measured in {duration(monotonic() - self._begun)}")

    def _show(self, last: str) -> None:
        show = self._handle.update if self._shown else self._handle.display
        show({"text/plain": "\n".join([*self._kept, last])}, raw=True)
        self._shown = True
