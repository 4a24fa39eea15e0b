"""`speechmeter trace`: what changed between two traces, and several in one file."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from speechmeter.cli.saying import say

app = typer.Typer(
    help="Traces of steps: what changed, and several side by side.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.callback()
def _options() -> None:
    """Traces of steps: what changed, and several side by side."""


@app.command()
def diff(
    first: Path = typer.Argument(
        ..., metavar="A", help="A trace, or a run or folder with traces of one thing.", show_default=False
    ),
    second: Path = typer.Argument(..., metavar="B", help="What to compare it with.", show_default=False),
    changed: str = typer.Option("any", help="Which changes to list: any, only (one side has it), count or time."),
    min_effect: str = typer.Option("10%", help="Minimum relative change of time to list."),
    most: int = typer.Option(30, help="Maximum number of rows.", min=1),
    format: str = typer.Option("table", help="table, markdown, csv, latex or json."),
) -> None:
    """List operators, kernels, labels and modules that changed in number or in time from A to B, per step."""
    from speechmeter.analysis.traces import trace_diff
    from speechmeter.api.comparing import share
    from speechmeter.cli.console import console_for
    from speechmeter.core.errors import InputError
    from speechmeter.core.plugins import nearest
    from speechmeter.core.traces import find_traces, read_trace
    from speechmeter.report.profiles import CHANGED, diff_table
    from speechmeter.report.terminal import draw
    from speechmeter.report.text import FORMATS

    if format != "table" and format not in FORMATS:
        raise InputError(f"there is no format {format!r}", where="--format", fix=nearest(format, ["table", *FORMATS]))
    if changed not in CHANGED:
        raise InputError(f"there is no change {changed!r}", where="--changed", fix=nearest(changed, list(CHANGED)))
    effect = share(min_effect, "--min-effect")
    one, other = ([read_trace(file) for file in find_traces(path)] for path in (first, second))
    table = diff_table(
        trace_diff(one, other, min_effect=effect), most=most, min_effect=f"{effect:.0%}", changed=changed
    )
    if not table.rows:
        say(f"nothing {CHANGED[changed]}")
        return
    if format == "table":
        draw([table], console_for(sys.stdout))
    else:
        say(FORMATS[format]([table]).rstrip())


@app.command()
def merge(
    traces: list[Path] = typer.Argument(..., help="Two traces or more, or folders with one each.", show_default=False),
    output: Path = typer.Option(..., "-o", "--output", help="merged.json.gz", show_default=False),
    keep_time: bool = typer.Option(False, "--keep-time", help="Leave each when it really was, on one machine's clock."),
    force: bool = typer.Option(False, "--force", help="Replace what stands at -o."),
) -> None:
    """Put traces side by side into one file, each from zero on, so that they can be looked at together."""
    from speechmeter.core.errors import InputError
    from speechmeter.core.files import check_free, written_by_user
    from speechmeter.core.traces import find_trace, read_trace, write_trace
    from speechmeter.store.trace_merge import merged

    check_free(output, force=force, makes_folder=True)
    if not output.name.endswith(".gz"):
        raise InputError(f"{output.name} is written compressed", where="-o", fix="end its name in .json.gz")
    if len(traces) < 2:
        raise InputError("one trace is nothing to merge", fix="name another")
    found = [find_trace(path) for path in traces]
    names = _names(found)
    together = merged({n: read_trace(p) for n, p in zip(names, found, strict=True)}, keep_time=keep_time)
    with written_by_user(output):
        size = write_trace(output, together)
    say(f"{len(found)} traces, {size:,} bytes: {output}")


def _names(paths: list[Path]) -> list[str]:
    """A name for each trace: its file's, with a number where several have the same."""
    stems = [path.name.partition(".")[0] for path in paths]
    return [stem if stems.count(stem) == 1 else f"{stem} {place + 1}" for place, stem in enumerate(stems)]
