"""Lines that commands print: whatever a name, a path or a message of others holds, it does not steer the terminal."""

from __future__ import annotations

import warnings
from typing import TextIO

import typer

from speechmeter.core.errors import SkippedLinesWarning
from speechmeter.core.printable import printable


def say(text: str, *, err: bool = False) -> None:
    """Print a line, or several, to standard output or to standard error."""
    typer.echo(printable(text), err=err)


def say_warnings() -> None:
    """Warnings of ours as a line on standard error, each once; those of others as Python prints them."""
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
            say(f"speechmeter: warning: {message}", err=True)
        else:
            usual(message, category, filename, lineno, file, line)

    warnings.showwarning = show
    warnings.simplefilter("default", SkippedLinesWarning)  # whatever PYTHONWARNINGS says
