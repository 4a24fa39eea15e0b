"""`speechmeter data subset`: a list of utterances made smaller, and how long its items are."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from speechmeter.cli.saying import say

if TYPE_CHECKING:
    from speechmeter.workloads.selection import Choice, Selection

_ALL = "all"


def subset(
    source: Path = typer.Argument(..., help="A list of utterances or a folder of them.", show_default=False),
    output: Path | None = typer.Option(
        None, "-o", "--output", help="set.tsv, set.jsonl or set.npy; without it only the statistics are printed."
    ),
    count: int | None = typer.Option(None, help="How many items; without it all of them.", min=1),
    pick: str | None = typer.Option(
        None, help="first, random (the default with --count), shortest, longest; or all: the last three, a file each."
    ),
    ref_dataset: Path | None = typer.Option(None, help="Take only items whose ids this list has."),
    seed: int = typer.Option(0, help="For random.", min=0),
    format: str = typer.Option("auto", help="The format of SOURCE, where it cannot be told."),
    root: Path | None = typer.Option(None, help="Where the paths of SOURCE start."),
    longest: float = typer.Option(3600.0, help="Longer items are left out, in seconds."),
    channel: str = typer.Option("mix", help="Of files with several channels: mix, or a number from 0 on."),
    force: bool = typer.Option(False, "--force", help="Replace existing files."),
) -> None:
    """Choose items of a list, read each of them, say how long they are, and with -o write them as a list of its own."""
    from speechmeter.cli.console import console_for
    from speechmeter.cli.progress import counting
    from speechmeter.core.errors import InputError
    from speechmeter.core.files import check_free
    from speechmeter.workloads import selection
    from speechmeter.workloads.manifests.utterance import MIX
    from speechmeter.workloads.manifests.write import check_format, companions
    from speechmeter.workloads.selection import FIRST, LONGEST, PICKS, RANDOM, SHORTEST
    from speechmeter.workloads.sound import Taste

    usual = RANDOM if count is not None else FIRST
    picks = (RANDOM, SHORTEST, LONGEST) if pick == _ALL else (pick or usual,)
    if pick not in (None, _ALL, *PICKS):
        raise InputError(f"takes one of {', '.join((*PICKS, _ALL))}, not {pick!r}", where="--pick")
    if count is None and picks != (FIRST,):
        raise InputError(f"{pick} needs a number of items", where="--pick", fix="add --count, for example --count 500")
    wanted = int(channel) if channel.isdecimal() else channel
    if isinstance(wanted, str) and wanted != MIX:
        raise InputError(f"channel takes mix or a number from 0 on, not {channel!r}", where="--channel")
    files: list[Path | None] = [output if len(picks) == 1 else _file_for(output, how) for how in picks]
    for named in filter(None, files):
        check_format(named)
        for path in (named, *companions(named)):
            check_free(path, force=force, makes_folder=True)
    ids = None if ref_dataset is None else selection.ids_of(ref_dataset)
    taste = Taste(longest_s=longest, channel=wanted)
    for how, file in zip(picks, files, strict=True):
        choice = selection.Choice(
            manifest=source, format=format, root=root, count=count, how=how, ids=ids, seed=seed, taste=taste
        )
        with counting(console_for(sys.stderr), "reading") as watch:
            found = selection.select(choice, watch=watch)
        _tell(found, f"{how}: " if len(picks) > 1 else "")
        if file is not None:
            _write(found, choice, file)


def _file_for(output: Path | None, how: str) -> Path | None:
    """`set.npy` as `set-shortest.npy`."""
    return None if output is None else output.with_name(f"{output.stem}-{how}{output.suffix}")


def _write(found: Selection, choice: Choice, output: Path) -> None:
    from speechmeter.core.files import written_by_user
    from speechmeter.workloads.manifests.write import companions, write

    with written_by_user(output):
        written = write(output, found, choice.taste)
        for stale in set(companions(output)) - set(written):
            stale.unlink(missing_ok=True)
    say(f"written: {', '.join(map(str, written))}")


def _tell(found: Selection, name: str) -> None:
    seconds = [item.seconds for item in found.items]
    mean_s = sum(seconds) / len(seconds)
    say(f"{name}{len(seconds)} items · min {min(seconds):.2f} s · max {max(seconds):.2f} s · mean {mean_s:.2f} s")
    for note in found.notes:
        say(f"speechmeter: {note}", err=True)
    if found.left_out.count:
        say(f"speechmeter: {found.left_out.line(most=len(found.left_out.first))}", err=True)
