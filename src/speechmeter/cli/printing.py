"""What commands print: lines, tables, warnings. A name, a path or a message of others never steers the terminal."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

import typer

from speechmeter.core.errors import SkippedLinesWarning
from speechmeter.core.printable import printable

if TYPE_CHECKING:
    from rich.console import Console

    from speechmeter.report.tables import Table

_FILE_WIDTH = 160


def say(text: str, *, err: bool = False) -> None:
    """Print a line, or several, to standard output or to standard error."""
    typer.echo(printable(text), err=err)


def note(text: str) -> None:
    """Print a remark to standard error, where it does not mix with what is piped on."""
    say(f"speechmeter: {text}", err=True)


def console_for(stream: TextIO) -> Console:
    """A Rich console. It has the terminal's width; in a file, tables are not folded to 80 columns."""
    from rich.console import Console

    return Console(file=stream, width=None if stream.isatty() else _FILE_WIDTH)


def print_tables(tables: Sequence[Table], format: str, *, sci: bool = False) -> None:
    """Print tables in one of `TABLE_FORMATS`."""
    from speechmeter.report.terminal import draw
    from speechmeter.report.text import FORMATS

    if format == "table":
        draw(tables, console_for(sys.stdout), sci=sci)
    else:
        say(FORMATS[format](tables, sci=sci).rstrip())


def print_warnings() -> None:
    """From now on, a warning of ours is a line on standard error, printed once; others appear as Python prints them."""
    usual = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if issubclass(category, SkippedLinesWarning):
            note(f"warning: {message}")
        else:
            usual(message, category, filename, lineno, file, line)

    warnings.showwarning = show
    warnings.simplefilter("default", SkippedLinesWarning)  # whatever PYTHONWARNINGS says
