"""`speechmeter data`: commands about data sets and files of outputs."""

from __future__ import annotations

import typer

from speechmeter.cli import score

app = typer.Typer(
    help="Data sets, and outputs of models as files.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)
app.command("score")(score.score)


@app.callback()
def _options() -> None:
    """Data sets, and outputs of models as files."""
