"""`speechmeter compare --history`: at which commit did it become slower?"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from speechmeter.cli.saying import say


def show_history(text: str, thresholds: Mapping[str, float], last: int | None, format: str, min_effect: str) -> int:
    """Print the levels over all runs of a folder; the exit code."""
    from speechmeter.analysis.history import history_exit
    from speechmeter.api.histories import history
    from speechmeter.cli.console import console_for
    from speechmeter.cli.progress import counting
    from speechmeter.report.history import history_github, history_json, history_table
    from speechmeter.report.terminal import draw
    from speechmeter.report.text import markdown

    with counting(console_for(sys.stderr), "runs") as watch:
        found = history(text, thresholds, last=last, watch=watch)
    table = history_table(found.series, found.runs, found.notes, min_effect)
    if format == "json":
        say(history_json(found.series, found.notes))
    elif format == "markdown":
        say(markdown([table]))
    elif format == "github":
        say(history_github(table, found.series))
    else:
        draw([table], console_for(sys.stdout))
    return history_exit(found.series)
