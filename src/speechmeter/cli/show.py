"""`speechmeter show`: the tables of a run."""

from __future__ import annotations

import gc
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from speechmeter.cli.saying import say

if TYPE_CHECKING:
    from speechmeter.report.tables import Table


def show(
    run: Path = typer.Argument(..., help="A run directory."),
    metric: str | None = typer.Option(None, help="One of the words that are listed below, or any metric of the run."),
    format: str = typer.Option("table", help="table, markdown, csv, latex or json."),
    statistic: str = typer.Option(
        "geomean", "--stat", help="geomean over rounds; mean-sd, mean+3sd, p50, p90, p95, p99 or max of all samples."
    ),
    sci: bool = typer.Option(False, "--sci", help="Exponent notation."),
    split: bool = typer.Option(
        False, "--split", help="With --metric rtf: wall time, CPU busy and GPU busy side by side."
    ),
    filter: str | None = typer.Option(
        None, "--filter", help="Modules to list, with --metric modules: a pattern such as 'encoder.layers.*'."
    ),
    sort: str | None = typer.Option(
        None,
        "--sort",
        help="With --metric operators: own-time, total-time, calls, own-memory, memory, flops or name.",
    ),
    limit: int | None = typer.Option(
        None, "--limit", help="With --metric operators: how many to list of each case (default 20)."
    ),
    assume: list[str] = typer.Option(
        [], "--assume", help="A rate for the energy table: tdp_w=65, co2_g_per_kwh=400, price_per_kwh=0.30. Repeatable."
    ),
    at: list[str] = typer.Option(
        [], "--at", help="A size to extrapolate to, with --metric growth: seconds=60, batch=64. Repeatable."
    ),
) -> None:
    """Print the tables of a run: by default the first figure of each meter."""
    from speechmeter.analysis.assumed import read_assumptions
    from speechmeter.analysis.estimate import STATISTICS
    from speechmeter.core.errors import InputError
    from speechmeter.core.hosts import hosts_apart
    from speechmeter.core.plugins import nearest
    from speechmeter.report.choose import refuse_absent, tables
    from speechmeter.report.growth import read_at
    from speechmeter.report.methods.paragraph import WORD, methods, written
    from speechmeter.report.tables import with_notes
    from speechmeter.report.text import FORMATS, check_format
    from speechmeter.store.planned import unfinished
    from speechmeter.store.run_dir import RunDir

    gc.disable()  # a command this short frees nothing by it, and a third of its time would go there
    check_format(format)
    if statistic not in STATISTICS:
        raise InputError(
            f"there is no statistic {statistic!r}", where="--stat", fix=nearest(statistic, list(STATISTICS))
        )
    store = RunDir.existing(run)
    stored = store.records()
    if left := unfinished(run, stored):
        say(f"speechmeter: this run is unfinished: {left}; continue with --resume -o {shlex.quote(str(run))}", err=True)
    if metric == WORD:
        say(written(methods(stored, store.environments(), statistic), format))
        return
    records = hosts_apart(stored)
    found = tables(
        records,
        metric,
        statistic,
        read_assumptions(assume),
        filter,
        beside=split,
        at=read_at(at),
        sort=sort,
        limit=limit,
        where="--metric",
    )
    refuse_absent(found, records, metric, run, beside=split)
    found = with_notes(found, store.notes)
    if format != "table":
        say(FORMATS[format](found, sci=sci).rstrip())
        return
    _draw(found, sci, len(records))


def _draw(found: list[Table], sci: bool, count: int) -> None:
    from speechmeter.cli.console import console_for
    from speechmeter.report.terminal import draw

    if not count:
        say("this run holds no records yet")
    draw(found, console_for(sys.stdout), sci=sci)
