"""`speechmeter doctor`: what this machine can measure, how noisy it is, what is missing and how to get it."""

from __future__ import annotations

import sys

from speechmeter.cli.saying import say


def doctor() -> None:
    """Check sensors, clocks, noise and plug-ins."""
    from rich.text import Text

    from speechmeter.cli.console import console_for
    from speechmeter.launch.checkup import checkup
    from speechmeter.report.terminal import draw_rows

    marks = {"good": ("", ""), "note": ("! ", "yellow"), "bad": ("✗ ", "red")}
    rows = []
    for finding in checkup():
        advice = (f"\n{finding.advice}", "dim") if finding.advice else ""
        rows.append([Text(finding.what, style="bold"), Text.assemble(marks[finding.level], finding.state, advice)])
    say("this machine")
    draw_rows(["", ""], rows, console_for(sys.stdout), labels=2, header=False)
    say("plug-ins and packages: speechmeter models")
