"""Calls made back to back, in windows of whole passes over the batches, with the moment each pass ended."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from speechmeter.core.protocols import Session

WINDOWS = 3
LEAST_CALLS = 2
SLOW_WINDOW_S = 20.0
"""A window that takes longer (two calls of more than 10 s, or one long pass) stays the only one."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """`stamps_s`: the start, then the end of every pass. `edges`: which stamps bound the windows.

    Calls are counted by passes, not one by one, because batches may be unlike: a tick a few milliseconds into a short
    call would count it whole.
    """

    stamps_s: tuple[float, ...]
    edges: tuple[int, ...]
    calls_per_pass: int

    @property
    def windows_s(self) -> list[tuple[float, float]]:
        """(start, end) of each window."""
        return [(self.stamps_s[first], self.stamps_s[last]) for first, last in pairwise(self.edges)]

    @property
    def calls(self) -> int:
        """Calls in all windows."""
        return (self.edges[-1] - self.edges[0]) * self.calls_per_pass

    def calls_between(self, start_s: float, end_s: float) -> float:
        """Calls made between two moments; a pass that was under way counts by the share of its time."""
        return (self._passes_until(end_s) - self._passes_until(start_s)) * self.calls_per_pass

    def _passes_until(self, moment_s: float) -> float:
        done = min(max(bisect_right(self.stamps_s, moment_s) - 1, 0), len(self.stamps_s) - 2)
        begun_s, ended_s = self.stamps_s[done], self.stamps_s[done + 1]
        share = (moment_s - begun_s) / (ended_s - begun_s) if ended_s > begun_s else 1.0
        return done + min(max(share, 0.0), 1.0)


def run_load(session: Session, *, window_s: float, clock: Callable[[], float]) -> Load:
    """Whole passes over the batches until each window has its seconds and its calls."""
    session.sync()
    stamps_s, edges, per_pass = [clock()], [0], len(session.batches)
    while len(edges) <= WINDOWS:
        for batch in session.batches:
            session.call(batch)
        stamps_s.append(clock())
        spent_s, passes = stamps_s[-1] - stamps_s[edges[-1]], len(stamps_s) - 1 - edges[-1]
        if spent_s >= window_s and passes * per_pass >= LEAST_CALLS:
            edges.append(len(stamps_s) - 1)
            session.progress(f"energy: window {len(edges) - 1} of {WINDOWS}")
            if spent_s > SLOW_WINDOW_S:
                break
    return Load(stamps_s=tuple(stamps_s), edges=tuple(edges), calls_per_pass=per_pass)
