"""`speechmeter show`: the tables of a run."""

from __future__ import annotations

import gc
import shlex
from pathlib import Path

import typer

from speechmeter.cli.options import TABLE_FORMATS, format_option, option_group
from speechmeter.cli.printing import note, print_tables, say

_one_view = option_group("For one table only")


def show(
    run: Path | None = typer.Argument(
        None, metavar="RUN", help="A run directory, or a part of it: RUN@model=a,batch=1."
    ),
    metric: str | None = typer.Option(
        None, "--metric", metavar="METRIC", help="What to show: a name from the list below, or any metric of the run."
    ),
    format: str = format_option(*TABLE_FORMATS),
    statistic: str = typer.Option(
        "geomean",
        "--stat",
        metavar="STATISTIC",
        help="Statistic to show: geomean over rounds; or mean-sd, mean+3sd, p50, p90, p95, p99 or max of all samples.",
    ),
    sci: bool = typer.Option(False, "--sci", help="Print numbers with exponents."),
    explain: str | None = typer.Option(
        None,
        "--explain",
        metavar="METRIC",
        help="Explain a metric or a table in full. RUN may be left out.",
    ),
    split: bool = _one_view(
        False, "--split", help="With --metric rtf: wall time, CPU busy time and GPU busy time side by side."
    ),
    filter: str | None = _one_view(
        None,
        "--filter",
        metavar="PATTERN",
        help="With --metric modules: list only modules that match, such as 'encoder.layers.*'.",
    ),
    sort: str | None = _one_view(
        None,
        "--sort",
        metavar="COLUMN",
        help="With --metric operators: own-time, total-time, calls, own-memory, memory, flops or name.",
    ),
    limit: int | None = _one_view(
        None,
        "--limit",
        metavar="N",
        help="With --metric operators: number of operators to list for each case. The default is 20.",
    ),
    assume: list[str] = _one_view(
        [],
        "--assume",
        metavar="RATE",
        help=(
            "With --metric energy: a value to assume, such as tdp_w=65 (rated power in watts), "
            "co2_g_per_kwh=400 or price_per_kwh=0.30; with --metric capacity: price_per_hour=1.50, the price of the "
            "machine. Repeatable."
        ),
    ),
    at: list[str] = _one_view(
        [],
        "--at",
        metavar="SIZE",
        help="With --metric growth: a size to extrapolate to, such as seconds=60 or batch=64. Repeatable.",
    ),
    slo: str | None = _one_view(
        None,
        "--slo",
        metavar="BOUNDS",
        help="With --metric capacity or lenses: bounds in place of the plan's, such as "
        "final_delay_p95_s=0.8,live_completeness=99%,keep_up=0.01.",
    ),
) -> None:
    """Print the tables of a run. Without --metric, these are the first figures of each meter.

    \b
    Examples:
      speechmeter show runs/laptop
      speechmeter show runs/laptop --metric rtf --format csv
      speechmeter show --explain rtf
    """
    from speechmeter.api import showing
    from speechmeter.core.errors import InputError

    gc.disable()  # a command this short has nothing to free, and collecting takes a third of its time
    if explain is not None:
        say(showing.explained(explain, run))
        return
    if run is None:
        raise InputError("no run directory is given", where="show", fix="add one: speechmeter show RUN")
    found = showing.shown(
        run, metric, format=format, statistic=statistic, beside=split, modules=filter, sort=sort, limit=limit,
        assume=assume, at=at, slo=slo,
    )  # fmt: skip
    if found.unfinished:
        again = f"speechmeter run --resume -o {shlex.quote(str(run))}"
        note(f"this run is unfinished: {found.unfinished}; to continue it: {again}")
    if found.text:
        say(found.text)
        return
    if found.empty and format == "table":
        say("this run has no records yet")
    print_tables(found.tables, format, sci=sci)
