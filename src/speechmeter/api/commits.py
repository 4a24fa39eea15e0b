"""Compare two commits of the user's repository: make both ready, measure them in turn, judge the difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from speechmeter.api.comparing import Comparison, compare, select, usual_metrics
from speechmeter.api.runs import run_study
from speechmeter.api.starting import Options
from speechmeter.core.errors import InputError
from speechmeter.core.types import BASELINE, VARIANT
from speechmeter.launch.commits import commits
from speechmeter.launch.executors import THIS
from speechmeter.launch.recorder import Watcher
from speechmeter.plan.study import Study
from speechmeter.store.run_dir import new_run


@dataclass(frozen=True, kw_only=True)
class CommitsCompared:
    """The run that holds both commits as the variants `baseline` and `this`, and the comparison of these."""

    comparison: Comparison
    path: Path


def compare_commits(
    names: Sequence[str],
    study: Study,
    thresholds: Callable[[Sequence[str]], Mapping[str, float]],
    *,
    metrics: Sequence[str] = (),
    output: Path | None = None,
    force: bool = False,
    every_cell: bool = False,
    say: Callable[[str], None] = lambda line: None,
    watch: Watcher = lambda event: None,
) -> CommitsCompared:
    """Measure both commits in interleaved rounds of one run. Raises InputError where both load the same files.

    `thresholds` returns the smallest change that counts of each of some metrics; without `metrics` the usual ones.
    """
    if study.plan.find is not None:
        raise InputError("a search cannot compare commits", key="commits", fix="leave out `find`")
    ready = commits(names, say)
    made = run_study(study, Options(output=output or new_run("commits"), force=force, commits=ready), watch)
    base, new = (select(f"{made.path}@{VARIANT}={variant}") for variant in (BASELINE, THIS))
    found = compare(base, new, thresholds(metrics or usual_metrics(base, new)), every_cell=every_cell)
    which = [
        f"{side}: commit {one.short} ({one.name}), {one.subject}"
        for side, one in zip(("BASE", "NEW"), ready.values(), strict=True)
    ]
    return CommitsCompared(comparison=replace(found, notes=(*which, *found.notes)), path=made.path)
