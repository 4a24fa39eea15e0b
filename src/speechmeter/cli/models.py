"""`speechmeter models`: what can be measured here, and what is missing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from speechmeter.cli.saying import say
from speechmeter.core.protocols import Choice, Installed

if TYPE_CHECKING:
    from rich.text import Text


def models() -> None:
    """List subjects, workloads and meters with their version, or the reason for their absence."""
    from rich.text import Text

    from speechmeter.cli.console import console_for
    from speechmeter.core import plugins
    from speechmeter.core.errors import InputError
    from speechmeter.report.terminal import draw_rows

    rows: list[list[Text]] = []
    for name in plugins.names(plugins.SUBJECTS):
        try:
            subject = plugins.subject(name)
        except InputError as error:
            rows.append([Text(name), Text(error.reason, style="red"), Text()])
            continue
        state = subject.installed()
        rows.append([Text(name), _presence(state), Text(subject.summary)])
        rows += [[Text(f"{name}:{one.source}"), _presence(one), Text(one.summary)] for one in state.choices]
    say("models")
    draw_rows(["model", "version, or what is missing", "what it is"], rows, console_for(sys.stdout), labels=3)
    say(f"workloads: {', '.join(plugins.names(plugins.WORKLOADS))}")
    say(f"meters: {', '.join(plugins.names(plugins.METERS))}")


def _presence(state: Installed | Choice) -> Text:
    from rich.text import Text

    return Text(state.missing, style="yellow") if state.missing else Text(state.version)
