"""Consoles: the terminal's own width, and a wide page where the output goes to a file."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console

_FILE_WIDTH = 160


def console_for(stream: TextIO) -> Console:
    """A console on a stream; tables in a log file are not folded to 80 columns."""
    return Console(file=stream, width=None if stream.isatty() else _FILE_WIDTH)
