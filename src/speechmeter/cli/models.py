"""`speechmeter models`: what can be measured here, and what is missing."""

from __future__ import annotations

import sys

import typer

from speechmeter.core.protocols import Choice, Installed


def models() -> None:
    """List subjects, workloads and meters with their version, or the reason for their absence."""
    from rich.markup import escape
    from rich.table import Table

    from speechmeter.cli.console import console_for
    from speechmeter.core import plugins
    from speechmeter.core.errors import InputError

    console = console_for(sys.stdout)
    table = Table(title="models", title_justify="left", header_style="bold")
    for heading in ("model", "version, or what is missing", "what it is"):
        table.add_column(heading, overflow="fold")
    for name in plugins.names(plugins.SUBJECTS):
        try:
            subject = plugins.subject(name)
        except InputError as error:
            table.add_row(name, f"[red]{escape(error.what)}[/red]", "")
            continue
        state = subject.installed()
        table.add_row(name, _presence(state), escape(subject.summary))
        for choice in state.choices:
            table.add_row(f"{name}:{choice.source}", _presence(choice), escape(choice.summary))
    console.print(table)
    typer.echo(f"workloads: {', '.join(plugins.names(plugins.WORKLOADS))}")
    typer.echo(f"meters: {', '.join(plugins.names(plugins.METERS))}")


def _presence(state: Installed | Choice) -> str:
    from rich.markup import escape

    return f"[yellow]{escape(state.missing)}[/yellow]" if state.missing else escape(state.version)
