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
    exporting,
    importing,
    init,
    query,
    recompute,
    report,
    rerun,
    run,
    shapes,
    show,
    trace,
    tune,
)
from speechmeter.cli.errors import as_typed, stop_lines
from speechmeter.cli.options import Command
from speechmeter.cli.printing import note, print_warnings, say
from speechmeter.core.errors import EXIT_BAD_INPUT, EXIT_FAILED, SpeechmeterError, StoppedRun
from speechmeter.report.views import help_lines

_SUMMARY = "Measure what a speech model costs: time, memory, FLOPs and energy, with error bars."

app = typer.Typer(
    name="speechmeter",
    help=_SUMMARY,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command(cls=Command)(run.run)
app.command(cls=Command, epilog=help_lines())(show.show)
for command in (
    tune.tune, compare.compare, report.report, report.badge, report.plot, query.merge, query.query, rerun.rerun,
    recompute.recompute, shapes.shapes, doctor.models, doctor.doctor, doctor.selftest, init.init,
):  # fmt: skip
    app.command(cls=Command)(command)
app.command("import", cls=Command)(importing.import_)
app.command("export", cls=Command)(exporting.export)
app.add_typer(data.app, name="data")
app.add_typer(trace.app, name="trace")


def _version(wanted: bool) -> None:
    if wanted:
        from speechmeter import __version__

        say(f"speechmeter {__version__}")
        raise typer.Exit


@app.callback(help=_SUMMARY)
def _options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None: ...


def main() -> None:
    """Run the command and exit.

    The exit code is 0 when all is fine; 1 for a regression, a failed check, or a run whose cases failed; 2 for bad
    input; 3 when a comparison cannot tell; 130 when the run was interrupted.
    """
    print_warnings()
    try:
        app()
    except StoppedRun as stop:
        say(stop_lines(stop, sys.argv[1:], as_typed(app, sys.argv[1:])), err=True)
        sys.exit(stop.exit_code)
    except SpeechmeterError as error:
        note(error.message(as_typed(app, sys.argv[1:], error.where, error.key)))
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(EXIT_FAILED)
    except OSError as error:
        # what a full disk did not take is still buffered: at exit Python would write it again, and print a traceback
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        where = error.filename if error.filename is not None else "the output"
        note(
            f"{where}: {error.strerror or error}; check that it exists, that you may use it, and that the disk has room"
        )
        sys.exit(EXIT_BAD_INPUT)
