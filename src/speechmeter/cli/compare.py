"""`speechmeter compare`: is NEW slower than BASE? With `--history`: at which commit did it become slower?"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from speechmeter.cli.options import format_option, option_group
from speechmeter.cli.printing import console_for, note, print_tables, say

if TYPE_CHECKING:
    from speechmeter.api.comparing import Comparison
    from speechmeter.plan.study import Study

_many_runs = option_group("Comparing many runs")
_commits = option_group("Comparing two commits of the repository in the current directory")


def compare(
    base: str | None = typer.Argument(
        None, metavar="BASE", help="A run directory, or a part of it: RUN@model=a,batch=1."
    ),
    new: str | None = typer.Argument(None, metavar="NEW", help="Another run, or another part of the same run."),
    metric: list[str] | None = typer.Option(
        None,
        "--metric",
        metavar="METRIC",
        help="What to compare: latency, rtf, memory, parameters, modules, live, …; repeatable. "
        "The default is latency, and live for live cases.",
    ),
    min_effect: str = typer.Option(
        "5%",
        "--min-effect",
        metavar="SHARE",
        help="The smallest change that counts: a percentage such as 5%, or for live delays also a time such as 30ms.",
    ),
    thresholds: Path | None = typer.Option(
        None, "--thresholds", metavar="FILE", help="A YAML file with the smallest change that counts for each metric."
    ),
    allow_different: bool = typer.Option(
        False, "--allow-different", help="Compare even if the protocol or the machine differs."
    ),
    allow_missing: bool = typer.Option(False, "--allow-missing", help="Accept that cases of BASE are missing in NEW."),
    every_cell: bool = typer.Option(
        False, "--every-cell", help="Judge each comparison separately, without a correction for multiple comparisons."
    ),
    format: str = format_option("table", "markdown", "json", "github"),
    history: str | None = _many_runs(
        None,
        "--history",
        metavar="DIR",
        help="Instead of BASE and NEW, follow each case over all runs in this folder: DIR or DIR@model=a.",
    ),
    last: int | None = _many_runs(None, "--last", metavar="N", min=1, help="Use only the N newest runs of the folder."),
    commits: tuple[str, str] | None = _commits(
        None,
        "--commits",
        metavar="BASE NEW",
        help="Instead of two runs, measure these two commits in turn, each in an environment of its own, and compare "
        "them. Environments are kept in ~/.cache/speechmeter/commits.",
    ),
    model: list[str] | None = _commits(
        None, "--model", metavar="MODEL", help="With --commits: what to measure, as in `speechmeter run`; repeatable."
    ),
    plan: Path | None = _commits(None, "--plan", metavar="FILE", help="With --commits: the plan to measure."),
    set_: list[str] | None = _commits(
        None, "--set", metavar="KEY=VALUE", help="With --commits: set a plan key, such as seconds=5; repeatable."
    ),
    trust: bool = _commits(
        False, "--trust", help="With --commits: allow the plan to run the Python code and commands that it names."
    ),
    output: Path | None = _commits(
        None,
        "-o",
        "--output",
        metavar="DIR",
        help="With --commits: the run directory to write. The default is runs/<time>-commits.",
    ),
    force: bool = _commits(False, "--force", help="With --commits: replace the run in the output directory."),
) -> None:
    """Compare two runs cell by cell. The verdict for a cell is SLOWER, FASTER, SAME or CANNOT TELL.

    The exit code is 1 on a regression, and 3 if the command cannot tell. A cell counts as a regression only if it
    is still significant after a correction for the number of cells, and if the geometric mean of all changes exceeds
    --min-effect.

    With --commits, both commits are measured in interleaved rounds of one run, and the verdict is on that.

    With --history, the command looks for level shifts of each case over many runs. The exit code is 1 if the newest
    shift is a regression or the newest run failed.

    \b
    Examples:
      speechmeter compare runs/before runs/after
      speechmeter compare runs/both@model=a runs/both@model=b --metric rtf
      speechmeter compare runs/live@model=a runs/live@model=b --metric live --min-effect 30ms
      speechmeter compare --history runs --last 20
      speechmeter compare --commits main HEAD --model python:bench.py:make --set seconds=5
    """
    from speechmeter.api import comparing
    from speechmeter.core.errors import InputError

    shown = min_effect if thresholds is None else f"as {thresholds} says"
    if commits is None and (given := _given(model=model, plan=plan, set=set_, output=output)):
        raise InputError("it needs two commits to measure", key=given, fix="add `commits`, or use `speechmeter run`")
    if commits is not None:
        if base is not None or history is not None:
            raise InputError(
                "it cannot be combined with runs that were measured", key="commits", fix="leave out one of the two"
            )
        if not model and plan is None:
            raise InputError("there is nothing to measure", key="commits", fix="add `model` or `plan`")
        from speechmeter.api.starting import study_of  # here, because it brings the schema of plans

        def effects(names: Sequence[str]) -> Mapping[str, float]:
            usual = [] if thresholds is not None else list(names)
            return comparing.thresholds_of(metric or usual, min_effect, thresholds)

        code = _two_commits(
            commits, study_of(plan, models=model or [], axes={}, keys={}, sets=set_ or [], trust=trust),
            effects,
            metric or (), output, format, shown, force=force, every_cell=every_cell,
        )  # fmt: skip
    elif history is not None:
        if base is not None:
            raise InputError("it cannot be combined with BASE and NEW", key="history", fix="leave out one of the two")
        code = _history(history, comparing.thresholds_of(metric or [], min_effect, thresholds), last, format, shown)
    else:
        if new is None:
            raise InputError("two runs are needed", where="compare", fix="give BASE and NEW, or `history: DIR`")
        if last is not None:
            raise InputError("it needs a history", key="last", fix="add `history: DIR`")
        sides = comparing.select(base or ""), comparing.select(new)
        names = metric or ([] if thresholds is not None else comparing.usual_metrics(*sides))
        found = comparing.compare(
            *sides,
            comparing.thresholds_of(names, min_effect, thresholds),
            allow_different=allow_different,
            allow_missing=allow_missing,
            every_cell=every_cell,
        )
        _print(found, format, shown)
        code = found.family.exit_code()
    if code:
        raise typer.Exit(code)


def _print(found: Comparison, format: str, min_effect: str) -> None:
    from speechmeter.report.comparison import comparison_json, comparison_table, github

    table = comparison_table(found.family, found.notes, min_effect)
    if format == "json":
        say(comparison_json(found.family, found.notes))
    elif format == "github":
        say(github(table, found.family))
    else:
        print_tables([table], format)


def _given(**options: object) -> str | None:
    """The first of these options that was given."""
    return next((name for name, value in options.items() if value), None)


def _two_commits(
    names: tuple[str, str],
    study: Study,
    thresholds: Callable[[Sequence[str]], Mapping[str, float]],
    metrics: Sequence[str],
    output: Path | None,
    format: str,
    min_effect: str,
    *,
    force: bool,
    every_cell: bool,
) -> int:
    """Measure and compare two commits; the exit code."""
    from speechmeter.api.commits import compare_commits
    from speechmeter.api.progress import progress

    with progress(console_for(sys.stderr)) as watch:
        found = compare_commits(
            names, study, thresholds, metrics=metrics, output=output, force=force, every_cell=every_cell, say=note,
            watch=watch,
        )  # fmt: skip
    note(f"both commits are in {found.path}, as {found.path}@variant=baseline and {found.path}@variant=this")
    _print(found.comparison, format, min_effect)
    return found.comparison.family.exit_code()


def _history(folder: str, thresholds: Mapping[str, float], last: int | None, format: str, min_effect: str) -> int:
    """Print the levels over all runs of a folder; the exit code."""
    from speechmeter.api.histories import history
    from speechmeter.api.progress import counting
    from speechmeter.report.history import history_github, history_json, history_table

    with counting(console_for(sys.stderr), "runs") as watch:
        found = history(folder, thresholds, last=last, watch=watch)
    table = history_table(found.series, found.runs, found.notes, min_effect)
    if format == "json":
        say(history_json(found.series, found.notes))
    elif format == "github":
        say(history_github(table, found.series))
    else:
        print_tables([table], format)
    return found.exit_code
