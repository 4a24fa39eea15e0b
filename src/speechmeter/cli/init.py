"""`speechmeter init`: the plans and examples that come with the package."""

from __future__ import annotations

import shlex
from pathlib import Path

import typer

from speechmeter.cli.printing import say


def init(
    folder: Path = typer.Argument(
        Path(), metavar="DIR", help="The folder to write into. The default is the current one.", show_default=False
    ),
    force: bool = typer.Option(False, "--force", help="Replace output files that exist."),
) -> None:
    """Copy the plans and example runs that come with Speechmeter into a folder, to try and to change.

    \b
    Example:
      speechmeter init first-steps
    """
    from speechmeter.api.shipped import copy_shipped

    copied = copy_shipped(folder, force=force)
    say(f"written: {len(copied.plans)} plans in {folder / 'plans'}")
    say(
        f"written: {len(copied.runs)} example runs in {folder / 'examples/runs'}, and other examples in the same folder"
    )
    say("next:")
    enter = [] if folder == Path() else [(f"cd {shlex.quote(str(folder))}", "")]
    for command, what in (
        *enter,
        ("speechmeter show examples/runs/cpu-grid --metric rtf", "the tables of a run"),
        ("speechmeter models", "what can be measured here, and what other models need"),
        ("speechmeter run plans/audio-grid.yaml --dry-run", "the cases of a plan; needs speechmeter[transformers]"),
    ):
        say(f"  {command:<54}{'# ' if what else ''}{what}".rstrip())
