"""`speechmeter doctor`, `models` and `selftest`: what this machine can measure, and whether it measures right."""

from __future__ import annotations

import sys

import typer

from speechmeter.cli.printing import console_for, say


def doctor() -> None:
    """Check the sensors, clocks, noise and packages of this machine. Print how to install what is missing.

    \b
    Example:
      speechmeter doctor
    """
    from rich.text import Text

    from speechmeter.api.machine import checkup
    from speechmeter.report.terminal import draw_rows

    marks = {"good": ("", ""), "note": ("! ", "yellow"), "bad": ("✗ ", "red")}
    rows = []
    for finding in checkup():
        advice = (f"\n{finding.advice}", "dim") if finding.advice else ""
        rows.append([Text(finding.what, style="bold"), Text.assemble(marks[finding.level], finding.state, advice)])
    say("this machine")
    draw_rows(["", ""], rows, console_for(sys.stdout), labels=2, header=False)
    say("to list plug-ins and packages: speechmeter models")


def models(
    interpreter: str | None = typer.Option(
        None,
        "--interpreter",
        metavar="PYTHON",
        help="List what can be measured by another Python interpreter: its path, or the folder of its environment. "
        "Speechmeter need not be installed there.",
    ),
) -> None:
    """List models, workloads and meters with their versions, or what is missing to use them.

    \b
    Examples:
      speechmeter models
      speechmeter models --interpreter envs/vosk/bin/python
    """
    from rich.text import Text

    from speechmeter.api.machine import installed
    from speechmeter.report.terminal import draw_rows

    found = installed(interpreter)
    rows = []
    for one in found.models:
        state = Text(one.missing, style="yellow") if one.missing else Text(one.version)
        rows.append([Text(one.name), Text(one.error, style="red") if one.error else state, Text(one.summary)])
    say("models" if interpreter is None else f"models by {interpreter} (Python {found.python})")
    draw_rows(["model", "version, or what is missing", "what it is"], rows, console_for(sys.stdout), labels=3)
    say(f"workloads: {', '.join(found.workloads)}")
    say(f"meters: {', '.join(found.meters)}")


def selftest() -> None:
    """Check every meter against something whose cost is known on this machine.

    The exit code is 1 if a meter is outside its tolerance. On a busy machine,
    pacing and stamping of live measurements are a warning.

    \b
    Example:
      speechmeter selftest
    """
    from rich.text import Text

    from speechmeter.api.selftest import selftest as findings
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
            colour = {"passed": "green", "failed": "red"}.get(finding.state, "yellow")
            why = finding.excuse or finding.trouble
            state = Text.assemble((finding.state, colour), f": {why}" if why else "")
            rows.append([Text(finding.meter), Text(finding.what), *map(Text, shown), state])
    say("selftest")
    draw_rows(["meter", "what is checked", "truth", "reading", "error", "allowed", "outcome"], rows, console, labels=2)
    if failed:
        say(f"{failed} outside tolerance: do not trust such measurements from this machine", err=True)
        raise typer.Exit(1)
