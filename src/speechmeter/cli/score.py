"""`speechmeter data score`: files of utterances in the leaderboard's form, scored."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from speechmeter.cli.saying import say


def score(
    files: list[Path] = typer.Argument(
        ..., help="JSON lines with audio_filepath, duration, time, text, pred_text: one file a system."
    ),
    normaliser: str = typer.Option("basic", help="english, basic or none; or an older version such as basic.v1."),
    format: str = typer.Option("table", help="table, markdown, csv, latex or json."),
) -> None:
    """Print WER, CER and RTFx of each file, and the difference of every two. Lines that cannot be used are named."""
    from speechmeter.api.scoring import score_files
    from speechmeter.cli.console import console_for
    from speechmeter.core.errors import InputError
    from speechmeter.core.plugins import nearest
    from speechmeter.report.terminal import draw
    from speechmeter.report.text import FORMATS

    if format != "table" and format not in FORMATS:
        raise InputError(f"there is no format {format!r}", where="--format", fix=nearest(format, ["table", *FORMATS]))
    found = score_files(files, normaliser)
    for line in found.bad_lines:
        say(f"speechmeter: {line}; left out", err=True)
    if format != "table":
        say(FORMATS[format](found.tables()).rstrip())
        return
    draw(found.tables(), console_for(sys.stdout))
