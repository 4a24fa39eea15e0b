"""A search for the largest size that fits: one trial after another, each an ordinary record before the next begins.

The next size follows from the records alone, so a search that was stopped continues where it was. What an answer is
depends on the tactic: for memory, to fit or to run out of it. Any other failure ends the search of that line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from speechmeter.analysis.frontier import Bounds, next_size, trials_left
from speechmeter.analysis.live.probing import Probe
from speechmeter.analysis.stopping import Rounds
from speechmeter.core import plugins
from speechmeter.core.errors import InputError, StoppedRun
from speechmeter.core.finding import Target, at
from speechmeter.core.types import FAILED, Case, Record, Skip
from speechmeter.launch.executors import Executor
from speechmeter.launch.recorder import Event, Watcher, run_sweep
from speechmeter.launch.schedule import Sweep
from speechmeter.store.run_dir import RunWriter

OUT_OF_MEMORY = "oom"
_ONCE = Rounds(least=1, most=1)


class Tactic(Protocol):
    """What is tried next, from the records of a line alone."""

    def is_answer(self, record: Record, line: Sequence[Record]) -> bool:
        """Whether a trial says something about its size. `line` are the records of all trials along its line."""
        ...

    def next_probe(self, records: Sequence[Record], target: Target, bounds: Bounds) -> Probe | None:
        """The size to try, with the number of its rounds; None when the search is over."""
        ...

    def left(self, records: Sequence[Record], target: Target, bounds: Bounds) -> int:
        """About how many rounds are left."""
        ...


class Fitting:
    """The tactic for memory: a single round of a size either fits or runs out of memory."""

    def is_answer(self, record: Record, line: Sequence[Record] = ()) -> bool:
        """Any other failure says nothing about memory."""
        return record.status in ("ok", OUT_OF_MEMORY)

    def next_probe(self, records: Sequence[Record], target: Target, bounds: Bounds) -> Probe | None:
        """Doubled until one fails, then the middle."""
        size = next_size(self._tried(records, target), bounds)
        return None if size is None else Probe(size=size, rounds=1)

    def left(self, records: Sequence[Record], target: Target, bounds: Bounds) -> int:
        """About how many trials are left."""
        return trials_left(self._tried(records, target), bounds)

    def _tried(self, records: Sequence[Record], target: Target) -> dict[int, bool]:
        return {
            target.steps(record.case.axes[target.axis]): record.status == "ok"
            for record in records
            if self.is_answer(record)
        }


FITTING = Fitting()


@dataclass(frozen=True, kw_only=True)
class Search:
    """What to search: each case is a line, along which the target's axis is raised from the value of the case.

    `most` and `within` are as in `Target`. Lines in `unavailable` get a record with the reason.
    """

    lines: Sequence[Case]
    target: Target
    most: float
    within: float
    tactic: Tactic = FITTING
    unavailable: Sequence[Skip] = ()
    retry_failed: bool = False

    def bounds(self, line: Case) -> Bounds:
        """The bounds of one line, in steps."""
        return Bounds(
            start=max(1, self.target.steps(line.axes[self.target.axis])),
            most=max(1, self.target.steps(self.most)),
            within=self.within,
        )


def run_search(search: Search, executor: Executor, store: RunWriter, watch: Watcher = lambda event: None) -> None:
    """Search every line, one after another. Raises StoppedRun where it ends early, finished trials kept."""
    left_out = {skip.case.id for skip in search.unavailable}
    absent = Sweep(cases=(), rounds=_ONCE, unavailable=search.unavailable, retry_failed=search.retry_failed)
    run_sweep(absent, executor, store, watch)
    lines = [line for line in search.lines if line.id not in left_out]
    run = _Run(search, executor, store, watch)
    try:
        for index, line in enumerate(lines):
            run.lines_after = len(lines) - index - 1
            run.line(line)
    except StoppedRun as stop:
        stop.finished = f"{run.made} trials measured and saved"
        raise


class _Run:
    """Trials made and still to come: turns the events of single trials into those of the whole search."""

    def __init__(self, search: Search, executor: Executor, store: RunWriter, watch: Watcher) -> None:
        self._search, self._executor, self._store, self._watch = search, executor, store, watch
        self.made = self._left = self.lines_after = 0

    def line(self, line: Case) -> None:
        """Search one line; rounds that the store has are not repeated."""
        target, tactic, bounds = self._search.target, self._search.tactic, self._search.bounds(line)
        known = 0
        while (probe := tactic.next_probe(self._of(line), target, bounds)) is not None:
            fed = _largest_fed(lambda steps: at(line, target, steps), probe.size, known)
            if fed < probe.size:
                bounds = replace(bounds, most=fed)
                continue
            known = max(known, probe.size)
            self._left = tactic.left(self._of(line), target, bounds)
            trial = at(line, target, probe.size)
            failed = [one for one in self._unanswered(line, trial) if one.status in FAILED]
            rounds = Rounds(least=probe.rounds, most=probe.rounds)
            sweep = Sweep(cases=[trial], rounds=rounds, retry_failed=self._search.retry_failed and bool(failed))
            run_sweep(sweep, self._executor, self._store, self._pass_on)
            if self._unanswered(line, trial):
                return

    def _of(self, line: Case) -> list[Record]:
        """The records of all trials along a line."""
        axis = self._search.target.axis
        return [record for record in self._store.records() if record.case.line(axis) == line.line(axis)]

    def _unanswered(self, line: Case, trial: Case) -> list[Record]:
        """The records of one trial that say nothing about its size."""
        along, tactic = self._of(line), self._search.tactic
        return [record for record in along if record.case.id == trial.id and not tactic.is_answer(record, along)]

    def _pass_on(self, event: Event) -> None:
        self.made += event.kind == "finished"
        self._left -= event.kind == "finished"
        total = self.made + max(0, self._left) + self.lines_after * max(1, self._left)
        self._watch(replace(event, done=self.made, total=max(total, self.made)))


def _largest_fed(trial: Callable[[int], Case], size: int, known: int) -> int:
    """The largest size up to this one that the workload can make, `known` being one that it can."""
    if known >= size or _fed(trial(size)):
        return size
    low, high = known, size
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _fed(trial(middle)) else (low, middle)
    return low


def _fed(case: Case) -> bool:
    try:
        plugins.workload(case.workload.plugin).check(case)
    except InputError:
        return False
    return True
