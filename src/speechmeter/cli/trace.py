"""`speechmeter trace`: what changed between two traces, and several in one file."""

from __future__ import annotations

from pathlib import Path

import typer

from speechmeter.cli.options import TABLE_FORMATS, Command, format_option, one_of
from speechmeter.cli.printing import print_tables, say

_SUMMARY = "Compare profiler traces, or put several into one file."

app = typer.Typer(help=_SUMMARY, no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@app.callback(help=_SUMMARY)
def _options() -> None: ...


@app.command(cls=Command)
def diff(
    first: Path = typer.Argument(
        ..., metavar="A", help="A trace file, or a run or folder whose traces are all of one model.", show_default=False
    ),
    second: Path = typer.Argument(
        ..., metavar="B", help="The trace, run or folder to compare with A.", show_default=False
    ),
    changed: str = typer.Option(
        "any",
        "--changed",
        metavar="KIND",
        help="Which operators to list: only (they ran in A or in B only), count (the number of calls changed), time "
        "(the time changed), or any (all of these).",
        callback=one_of("any", "only", "count", "time"),
    ),
    min_effect: str = typer.Option(
        "10%", "--min-effect", metavar="SHARE", help="Minimum relative change of time to list."
    ),
    most: int = typer.Option(30, "--most", metavar="N", help="Maximum number of rows.", min=1),
    format: str = format_option(*TABLE_FORMATS),
) -> None:
    """List operators, kernels, labels and modules whose count or time per step changed from A to B.

    \b
    Example:
      speechmeter trace diff runs/before runs/after --changed time
    """
    from speechmeter.api.comparing import share
    from speechmeter.api.tracing import diff as diff_traces
    from speechmeter.report.profiles import CHANGED

    table = diff_traces(first, second, min_effect=share(min_effect, key="min_effect"), most=most, changed=changed)
    if table.rows:
        print_tables([table], format)
    else:
        say(f"nothing {CHANGED[changed]}")


@app.command(cls=Command)
def merge(
    traces: list[Path] = typer.Argument(
        ..., metavar="TRACE…", help="Two or more traces, or folders with one trace each.", show_default=False
    ),
    output: Path = typer.Option(
        ..., "-o", "--output", metavar="FILE", help="The file to write, such as merged.json.gz.", show_default=False
    ),
    keep_time: bool = typer.Option(
        False, "--keep-time", help="Keep the original times, for traces of one machine. Otherwise all start at zero."
    ),
    force: bool = typer.Option(False, "--force", help="Replace output files that exist."),
) -> None:
    """Merge traces into one file, to view them side by side.

    \b
    Example:
      speechmeter trace merge before.json.gz after.json.gz -o both.json.gz
    """
    from speechmeter.api.tracing import merge as merge_traces

    size = merge_traces(traces, output, keep_time=keep_time, force=force)
    say(f"{len(traces)} traces, {size:,} bytes: {output}")
