"""A search for the largest size that fits: one trial after another, each an ordinary record before the next begins.

The next size follows from the records alone, so a search that was stopped continues where it was. Running out of memory
is an answer. Any other failure is not: it ends the search of that line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from speechmeter.analysis.frontier import Bounds, next_size, trials_left
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


@dataclass(frozen=True, kw_only=True)
class Search:
    """What to search: each case is a line, along which the target's axis is raised from the value of the case.

    `most` and `within` are as in `Target`. Lines in `unavailable` get a record with the reason.
    """

    lines: Sequence[Case]
    target: Target
    most: float
    within: float
    unavailable: Sequence[Skip] = ()
    retry_failed: bool = False

    def bounds(self, line: Case) -> Bounds:
        """The bounds of one line, in steps."""
        return Bounds(
            start=self.target.steps(line.axes[self.target.axis]),
            most=max(1, self.target.steps(self.most)),
            within=self.within,
        )


def run_search(search: Search, executor: Executor, store: RunWriter, watch: Watcher = lambda event: None) -> None:
    """Search every line, one after another. Raises StoppedRun where it ends early, finished trials kept."""
    left_out = {skip.case.id for skip in search.unavailable}
    absent = Sweep(cases=(), rounds=_ONCE, unavailable=search.unavailable, retry_failed=search.retry_failed)
    run_sweep(absent, executor, store, watch)
    lines = [line for line in search.lines if line.id not in left_out]
    count = _Count(watch=watch)
    try:
        for index, line in enumerate(lines):
            count.lines_after = len(lines) - index - 1
            _search_line(search, line, _Trials(search=search, executor=executor, store=store, count=count))
    except StoppedRun as stop:
        stop.finished = f"{count.made} trials measured and saved"
        raise


class _Count:
    """Trials made and still to come: turns the events of single trials into those of the whole search."""

    def __init__(self, watch: Watcher) -> None:
        self._watch = watch
        self.made = 0
        self.left = 0
        self.lines_after = 0

    def watch(self, event: Event) -> None:
        """Pass an event of one trial on."""
        self.made += event.kind == "finished"
        self.left -= event.kind == "finished"
        total = self.made + max(0, self.left) + self.lines_after * max(1, self.left)
        self._watch(replace(event, done=self.made, total=max(total, self.made)))


@dataclass(frozen=True, kw_only=True)
class _Trials:
    """Makes single trials."""

    search: Search
    executor: Executor
    store: RunWriter
    count: _Count

    def record(self, trial: Case) -> Record:
        """The record of a trial: the store's, unless it failed otherwise than for memory and is to be repeated."""
        again = self.search.retry_failed and self._stored(trial, *(FAILED - {OUT_OF_MEMORY})) is not None
        run_sweep(Sweep(cases=[trial], rounds=_ONCE, retry_failed=again), self.executor, self.store, self.count.watch)
        found = self._stored(trial)
        assert found is not None
        return found

    def known(self, line: Case) -> dict[int, bool]:
        """The sizes of a line that the store has, and whether each fitted."""
        target = self.search.target
        own = line.line(target.axis)
        return {
            target.steps(record.case.axes[target.axis]): record.status == "ok"
            for record in self.store.records()
            if record.status in ("ok", OUT_OF_MEMORY) and record.case.line(target.axis) == own
        }

    def _stored(self, trial: Case, *statuses: str) -> Record | None:
        records = (record for record in self.store.records() if record.case.id == trial.id)
        return next((record for record in records if not statuses or record.status in statuses), None)


def _search_line(search: Search, line: Case, trials: _Trials) -> None:
    tried = trials.known(line)
    bounds = search.bounds(line)
    while (size := next_size(tried, bounds)) is not None:
        fed = _largest_fed(lambda steps: at(line, search.target, steps), size, max(tried, default=0))
        if fed < size:
            bounds = replace(bounds, most=fed)
            continue
        trials.count.left = trials_left(tried, bounds)
        status = trials.record(at(line, search.target, size)).status
        if status not in ("ok", OUT_OF_MEMORY):
            return
        tried[size] = status == "ok"


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
