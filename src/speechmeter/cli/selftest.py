"""`speechmeter selftest`: every meter against a known truth on this host, with its error printed."""

from __future__ import annotations

import sys

import typer


def selftest() -> None:
    """Check every meter on something whose cost is known. Exit code 1 when one is outside its tolerance."""
    from rich.markup import escape
    from rich.table import Table

    from speechmeter.api.selftest import selftest as findings
    from speechmeter.cli.console import console_for
    from speechmeter.report.numbers import number

    table = Table(title="selftest", title_justify="left", header_style="bold")
    for heading in ("meter", "on what"):
        table.add_column(heading, overflow="fold")
    for heading in ("truth", "reading", "error", "allowed"):
        table.add_column(heading, justify="right")
    table.add_column("", overflow="fold")
    failed = 0
    console = console_for(sys.stdout)
    with console.status("checking") as progress:
        for finding in findings():
            failed += finding.state == "failed"
            progress.update(f"checked {finding.meter}")
            values = (finding.truth, finding.reading, finding.error, finding.tolerance)
            shown = ["" if value is None else number(value, finding.unit) for value in values]
            colour = {"passed": "green", "failed": "red", "not checked": "yellow"}[finding.state]
            why = finding.excuse or finding.trouble
            state = f"[{colour}]{finding.state}[/{colour}]" + (f": {escape(why)}" if why else "")
            table.add_row(finding.meter, escape(finding.what), *shown, state)
    console.print(table)
    if failed:
        typer.echo(f"{failed} outside tolerance: figures of this kind from this host are not to be trusted", err=True)
        raise typer.Exit(1)
