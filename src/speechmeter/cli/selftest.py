"""`speechmeter selftest`: every meter against a known truth on this host, with its error printed."""

from __future__ import annotations

import sys

import typer

from speechmeter.cli.saying import say


def selftest() -> None:
    """Check every meter on something whose cost is known. Exit code 1 when one is outside its tolerance."""
    from rich.text import Text

    from speechmeter.api.selftest import selftest as findings
    from speechmeter.cli.console import console_for
    from speechmeter.report.numbers import number
    from speechmeter.report.terminal import draw_rows

    rows: list[list[Text]] = []
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
            state = Text.assemble((finding.state, colour), f": {why}" if why else "")
            rows.append([Text(finding.meter), Text(finding.what), *map(Text, shown), state])
    say("selftest")
    draw_rows(["meter", "on what", "truth", "reading", "error", "allowed", "outcome"], rows, console, labels=2)
    if failed:
        say(f"{failed} outside tolerance: figures of this kind from this host are not to be trusted", err=True)
        raise typer.Exit(1)
