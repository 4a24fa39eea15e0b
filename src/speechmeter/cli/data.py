"""`speechmeter data`: datasets, and what models made of them as files."""

from __future__ import annotations

import typer

from speechmeter.cli import score, subset

app = typer.Typer(
    help="Datasets, and outputs of models as files.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)
app.command("subset")(subset.subset)
app.command("score")(score.score)


@app.callback()
def _options() -> None:
    """Datasets, and outputs of models as files."""
