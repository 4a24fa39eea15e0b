"""A tuning: one round of some candidates after another, each an ordinary record before the next step is decided.

What comes next follows from the records alone, so a tuning that was stopped continues where it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from speechmeter.analysis.stopping import Rounds
from speechmeter.analysis.tuned import State, cell_of, state_of
from speechmeter.core.errors import StoppedRun
from speechmeter.core.tuning import Tuning
from speechmeter.core.types import Case, Skip
from speechmeter.launch.executors import Executor
from speechmeter.launch.git_state import git_state
from speechmeter.launch.recorder import Event, Watcher, run_sweep
from speechmeter.launch.schedule import Sweep
from speechmeter.store.run_dir import RunWriter


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """What is tuned: the cases of all combinations; those in `unavailable` get a record with the reason."""

    cases: Sequence[Case]
    tuning: Tuning
    unavailable: Sequence[Skip] = ()


def run_tuning(
    candidates: Candidates, executor: Executor, store: RunWriter, watch: Watcher = lambda event: None
) -> State:
    """Measure until there is an answer. Raises StoppedRun where it ends early, finished trials kept."""
    absent = Sweep(cases=(), rounds=Rounds(least=1, most=1), unavailable=candidates.unavailable)
    run_sweep(absent, executor, store, watch)
    records, guards, git = list(store.records()), dict[str, str](), git_state()
    cases = {cell_of(case, candidates.tuning): case for case in candidates.cases}
    made = 0

    def pass_on(event: Event) -> None:
        nonlocal made
        made += event.kind == "finished"
        records.extend([event.record] if event.record is not None and event.kind == "finished" else [])
        watch(replace(event, done=made, total=max(made, event.total - event.done + made)))

    try:
        while (state := state_of(records, candidates.tuning, guards)).step.stage != "done":
            step = state.step
            sweep = Sweep(
                cases=[cases[state.cells[one]] for one in step.wanted],
                rounds=Rounds(least=step.round + 1, most=step.round + 1),
                first_round=step.round,
            )
            run_sweep(sweep, executor, store, pass_on, records=tuple(records), git=git)
    except StoppedRun as stop:
        stop.finished = f"{made} trials measured and saved"
        raise
    return state
