"""`speechmeter data subset`: a list of utterances, made smaller."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from speechmeter.workloads.selection import Selection


def subset(
    source: Path = typer.Argument(..., help="A list of utterances or a folder of them.", show_default=False),
    output: Path = typer.Option(..., "-o", "--output", help="set.tsv, set.jsonl or set.npy.", show_default=False),
    count: int = typer.Option(..., help="How many items.", min=1, show_default=False),
    pick: str = typer.Option("random", help="first, random, shortest or longest."),
    seed: int = typer.Option(0, help="For random.", min=0),
    format: str = typer.Option("auto", help="The format of SOURCE, where it cannot be told."),
    root: Path | None = typer.Option(None, help="Where the paths of SOURCE start."),
    longest: float = typer.Option(3600.0, help="Longer items are left out, in seconds."),
    channel: str | None = typer.Option(None, help="Of files with several channels: mix, or a number from 0 on."),
    force: bool = typer.Option(False, "--force", help="Replace what stands at -o."),
) -> None:
    """Choose items of a list, read each of them, and write those that can be used as a list of its own."""
    from speechmeter.cli.console import console_for
    from speechmeter.cli.progress import counting
    from speechmeter.core.errors import InputError
    from speechmeter.workloads import selection
    from speechmeter.workloads.manifests.write import companions, write
    from speechmeter.workloads.sound import Taste

    taken = [path for path in (output, *companions(output)) if path.exists()]
    if taken and not force:
        raise InputError(f"{taken[0]} is there already", where="-o", fix="add --force, or choose another name")
    wanted = int(channel) if channel is not None and channel.isdecimal() else channel
    if isinstance(wanted, str) and wanted != "mix":
        raise InputError(f"channel takes mix or a number from 0 on, not {channel!r}", where="--channel")
    taste = Taste(longest_s=longest, channel=wanted)
    choice = selection.Choice(manifest=source, format=format, root=root, count=count, how=pick, seed=seed, taste=taste)
    with counting(console_for(sys.stderr), "reading") as watch:
        found = selection.select(choice, watch=watch)
    for stale in taken:
        stale.unlink()
    _tell(found, write(output, selection.entries(found, choice)))


def _tell(found: Selection, written: list[Path]) -> None:
    seconds = [item.seconds for item in found.items]
    mean_s = sum(seconds) / len(seconds)
    typer.echo(f"{len(seconds)} items · min {min(seconds):.2f} s · max {max(seconds):.2f} s · mean {mean_s:.2f} s")
    typer.echo(f"written: {', '.join(map(str, written))}")
    for note in found.notes:
        typer.echo(f"speechmeter: {note}", err=True)
    if found.left_out.count:
        typer.echo(f"speechmeter: {found.left_out.line(most=len(found.left_out.first))}", err=True)
