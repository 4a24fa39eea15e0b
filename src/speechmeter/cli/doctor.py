"""`speechmeter doctor`: what this machine can measure, how noisy it is, what is missing and how to get it."""

from __future__ import annotations

import sys

import typer


def doctor() -> None:
    """Check sensors, clocks, noise and plug-ins."""
    from rich.markup import escape
    from rich.table import Table

    from speechmeter.cli.console import console_for
    from speechmeter.launch.checkup import checkup

    table = Table(title="this machine", title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for finding in checkup():
        mark = {"good": "", "note": "[yellow]![/yellow] ", "bad": "[red]✗[/red] "}[finding.level]
        advice = f"\n[dim]{escape(finding.advice)}[/dim]" if finding.advice else ""
        table.add_row(escape(finding.what), f"{mark}{escape(finding.state)}{advice}")
    console_for(sys.stdout).print(table)
    typer.echo("plug-ins and packages: speechmeter models")
