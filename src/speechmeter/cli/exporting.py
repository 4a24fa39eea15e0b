"""`speechmeter export`: the figures of a run in an experiment tracker."""

from __future__ import annotations

from pathlib import Path

import typer

from speechmeter.cli.printing import say


def export(
    run: Path = typer.Argument(..., metavar="RUN", help="A run directory.", show_default=False),
    to: str = typer.Option(
        ...,
        "--to",
        metavar="TRACKER",
        help=(
            "Where to: mlflow, wandb, tensorboard, openmetrics (text for Prometheus), parquet, or vllm (for "
            "`vllm bench sweep plot`)."
        ),
        show_default=False,
    ),
    output: str | None = typer.Option(
        None,
        "-o",
        "--output",
        metavar="TARGET",
        help="File or folder to write; for mlflow a tracking URI. The default is the tracker's own.",
    ),
    metric: list[str] = typer.Option(
        [], "--metric", metavar="METRIC", help="Export only this metric. Repeatable. The default is all."
    ),
    every_scope: bool = typer.Option(
        False, "--every-scope", help="Also export figures of stages, modules and other parts of a call."
    ),
    force: bool = typer.Option(False, "--force", help="Replace output files that exist."),
) -> None:
    """Export the figures of a run, with their 95 % intervals, to a tracker that is installed.

    Nothing is sent to a server unless the target or the tracker's own settings name one.

    \b
    Example:
      speechmeter export runs/laptop --to mlflow -o sqlite:///mlflow.db
    """
    from speechmeter.integrations.trackers.exporting import export_run

    say(export_run(run, to, output, metrics=metric, every_scope=every_scope, force=force))
