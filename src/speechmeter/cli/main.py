"""The command line: commands are put together here, and our errors become one line and an exit code."""

from __future__ import annotations

import sys

import typer

from speechmeter.cli import (
    compare,
    data,
    doctor,
    merge,
    models,
    plot,
    query,
    report,
    rerun,
    run,
    selftest,
    shapes,
    show,
    trace,
)
from speechmeter.core.errors import CannotGoOnError, InterruptedRun, SpeechmeterError

EXIT_FAILED, EXIT_BAD_INPUT, EXIT_INTERRUPTED = 1, 2, 130

app = typer.Typer(
    name="speechmeter",
    help="What does this speech model cost? Time, memory, FLOPs, energy, as numbers you can defend.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command()(run.run)
app.command()(show.show)
app.command()(compare.compare)
app.command()(report.report)
app.command()(plot.plot)
app.command()(merge.merge)
app.command()(query.query)
app.command()(rerun.rerun)
app.command()(shapes.shapes)
app.command()(models.models)
app.command()(doctor.doctor)
app.command()(selftest.selftest)
app.add_typer(data.app, name="data")
app.add_typer(trace.app, name="trace")


def _version(wanted: bool) -> None:
    if wanted:
        from speechmeter import __version__

        typer.echo(f"speechmeter {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """What does this speech model cost? Time, memory, FLOPs, energy, as numbers you can defend."""


def main() -> None:
    """Run the command; exit 0 fine, 1 a regression, no repetition, failed cases under --strict or a run that cannot go
    on, 2 bad input, 3 cannot tell, 130 interrupted."""
    try:
        app()
    except InterruptedRun as stop:
        typer.echo(f"speechmeter: interrupted: {stop}", err=True)
        sys.exit(EXIT_INTERRUPTED)
    except CannotGoOnError as error:
        typer.echo(f"speechmeter: {error}", err=True)
        sys.exit(EXIT_FAILED)
    except SpeechmeterError as error:
        typer.echo(f"speechmeter: {error}", err=True)
        sys.exit(EXIT_BAD_INPUT)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(EXIT_FAILED)
