"""`speechmeter merge`: runs of several machines as one."""

from __future__ import annotations

from pathlib import Path

import typer

from speechmeter.cli.saying import say


def merge(
    runs: list[Path] = typer.Argument(..., help="Run directories, usually of several machines."),
    output: Path = typer.Option(..., "-o", "--output", help="The run directory to write; it must not exist."),
) -> None:
    """Put runs together. Records that stand in several are kept once; contradicting ones are refused."""
    from speechmeter.report.numbers import counted
    from speechmeter.store.merge import merge as merge_runs

    made = merge_runs(runs, output)
    for line in made.left_out:
        say(f"speechmeter: left out: {line}", err=True)
    for old, new in made.gathered.renamed:
        say(f"speechmeter: {old!r} is two machines, or one that changed: the other is {new!r} here", err=True)
    hosts = sorted({record.host for record in made.gathered.records})
    same = f", {counted(made.gathered.duplicates, 'duplicate')} left out" if made.gathered.duplicates else ""
    count = counted(len(made.gathered.records), "record")
    say(f"{count} of {counted(len(hosts), 'machine')} ({', '.join(hosts)}){same} · {output}")
    say(f"see: speechmeter show {output}")
