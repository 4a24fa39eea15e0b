"""The command line: commands are put together here, and our errors become one line and an exit code."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

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
from speechmeter.cli.saying import say, say_warnings
from speechmeter.cli.spelling import as_typed
from speechmeter.cli.stopping import stop_lines
from speechmeter.core.errors import EXIT_BAD_INPUT, EXIT_FAILED, SpeechmeterError, StoppedRun
from speechmeter.report.views import help_lines

_DISK = "check that it is there, that you may use it, and that the disk has room"

app = typer.Typer(
    name="speechmeter",
    help="What does this speech model cost? Time, memory, FLOPs, energy, as numbers you can defend.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command()(run.run)
app.command(epilog=help_lines())(show.show)
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

        say(f"speechmeter {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """What does this speech model cost? Time, memory, FLOPs, energy, as numbers you can defend."""


def main() -> None:
    """Run the command; exit 0 fine, 1 a regression, no repetition, failed cases under --strict or a run that cannot go
    on, 2 bad input, 3 cannot tell, 130 interrupted."""
    say_warnings()
    try:
        app()
    except StoppedRun as stop:
        say(stop_lines(stop, sys.argv[1:], as_typed(app, sys.argv[1:])), err=True)
        sys.exit(stop.exit_code)
    except SpeechmeterError as error:
        say(f"speechmeter: {error.message(as_typed(app, sys.argv[1:], error.where))}", err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(EXIT_FAILED)
    except OSError as error:
        _drop_output()
        where = error.filename if error.filename is not None else "the output"
        say(f"speechmeter: {where}: {error.strerror or error}; {_DISK}", err=True)
        sys.exit(EXIT_BAD_INPUT)


def _drop_output() -> None:
    """What the disk did not take stays in a buffer; at exit Python would try it again and print a traceback."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
