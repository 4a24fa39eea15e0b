"""`speechmeter trace`: what changed between two traces, and several in one file."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

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
    first: Path = typer.Argument(..., metavar="A", help="A trace, or a folder or run with one.", show_default=False),
    second: Path = typer.Argument(..., metavar="B", help="Another.", show_default=False),
    min_effect: str = typer.Option("10%", help="From when on a change of time alone is listed."),
    most: int = typer.Option(30, help="How many rows at most.", min=1),
    format: str = typer.Option("table", help="table, markdown, csv, latex or json."),
) -> None:
    """List the operators and kernels that changed in number or in time from A to B, by step."""
    from speechmeter.analysis.traces import trace_diff
    from speechmeter.api.comparing import share
    from speechmeter.cli.console import console_for
    from speechmeter.core.errors import InputError
    from speechmeter.core.plugins import nearest
    from speechmeter.core.traces import find_trace, read_trace
    from speechmeter.report.terminal import draw
    from speechmeter.report.text import FORMATS
    from speechmeter.report.traces import diff_table

    if format != "table" and format not in FORMATS:
        raise InputError(f"there is no format {format!r}", where="--format", fix=nearest(format, ["table", *FORMATS]))
    effect = share(min_effect, "--min-effect")
    one, other = (read_trace(find_trace(path)) for path in (first, second))
    found = trace_diff(one, other, min_effect=effect)
    if not found.changes:
        typer.echo("no operator and no kernel changed in number or time")
        return
    table = diff_table(found, most=most, min_effect=f"{effect:.0%}")
    if format == "table":
        draw([table], console_for(sys.stdout))
    else:
        typer.echo(FORMATS[format]([table]).rstrip())


@app.command()
def merge(
    traces: list[Path] = typer.Argument(..., help="Two traces or more, or folders with one each.", show_default=False),
    output: Path = typer.Option(..., "-o", "--output", help="merged.json.gz", show_default=False),
    keep_time: bool = typer.Option(False, "--keep-time", help="Leave each when it really was, on one machine's clock."),
    force: bool = typer.Option(False, "--force", help="Replace what stands at -o."),
) -> None:
    """Put traces side by side into one file, each from zero on, so that they can be looked at together."""
    from speechmeter.core.errors import InputError
    from speechmeter.core.traces import find_trace, read_trace, write_trace
    from speechmeter.store.trace_merge import merged

    if output.exists() and not force:
        raise InputError(f"{output} is there already", where="-o", fix="add --force, or choose another name")
    if not output.name.endswith(".gz"):
        raise InputError(f"{output.name} is written compressed", where="-o", fix="end its name in .json.gz")
    if len(traces) < 2:
        raise InputError("one trace is nothing to merge", fix="name another")
    found = [find_trace(path) for path in traces]
    names = _names(found)
    size = write_trace(
        output, merged({n: read_trace(p) for n, p in zip(names, found, strict=True)}, keep_time=keep_time)
    )
    typer.echo(f"{len(found)} traces, {size:,} bytes: {output}")


def _names(paths: list[Path]) -> list[str]:
    """A name for each trace: its file's, with a number where several have the same."""
    stems = [path.name.partition(".")[0] for path in paths]
    return [stem if stems.count(stem) == 1 else f"{stem} {place + 1}" for place, stem in enumerate(stems)]
