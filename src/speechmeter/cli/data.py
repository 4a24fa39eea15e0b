"""`speechmeter data`: smaller subsets of a dataset, and scores of model outputs that are stored as files."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from speechmeter.cli.options import TABLE_FORMATS, Command, format_option, option_group
from speechmeter.cli.printing import console_for, note, print_tables, say

_SUMMARY = "Make subsets of a dataset, and score model outputs that are stored as files."
_which = option_group("Which items to take")
_reading = option_group("How the list is read")

app = typer.Typer(help=_SUMMARY, no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@app.callback(help=_SUMMARY)
def _options() -> None: ...


@app.command(cls=Command)
def subset(
    source: Path = typer.Argument(
        ..., metavar="SOURCE", help="A list of utterances, or a folder of audio files.", show_default=False
    ),
    count: int | None = _which(
        None, "--count", metavar="N", min=1, help="Number of items to take. The default is all."
    ),
    pick: str | None = _which(
        None,
        "--pick",
        metavar="HOW",
        help="How to choose them: first, random (the default with --count), shortest or longest; "
        "or all, which writes one file each for the last three.",
    ),
    ref_dataset: Path | None = _which(
        None, "--ref-dataset", metavar="LIST", help="Take only items whose ids are in this list."
    ),
    seed: int = _which(0, "--seed", metavar="N", min=0, help="Seed of the random choice."),
    longest: float = _which(3600.0, "--longest", metavar="SECONDS", help="Leave out items that are longer than this."),
    format: str = _reading("auto", "--format", metavar="FORMAT", help="Format of SOURCE, if it cannot be recognised."),
    root: Path | None = _reading(
        None, "--root", metavar="DIR", help="The folder that paths in SOURCE are relative to."
    ),
    channel: str = _reading(
        "mix", "--channel", metavar="N", help="Channel to read: mix, or a channel number (the first is 0)."
    ),
    output: Path | None = typer.Option(
        None,
        "-o",
        "--output",
        metavar="FILE",
        help="The list to write: set.tsv, set.jsonl or set.npy. Without it, only statistics are printed.",
    ),
    force: bool = typer.Option(False, "--force", help="Replace output files that exist."),
) -> None:
    """Read a list of utterances, choose items, print how long they are, and write them as a new list.

    \b
    Example:
      speechmeter data subset train.tsv --count 500 -o train-500.tsv
    """
    from speechmeter.api import datasets
    from speechmeter.cli.progress import counting

    subsets = datasets.subsets(
        source, output=output, count=count, pick=pick, ref_dataset=ref_dataset, seed=seed, format=format, root=root,
        longest_s=longest, channel=channel, force=force,
    )  # fmt: skip
    for choice, file in subsets:
        with counting(console_for(sys.stderr), "reading") as watch:
            found = datasets.select(choice, watch=watch)
        name = f"{choice.how}: " if len(subsets) > 1 else ""
        seconds = [item.seconds for item in found.items]
        mean_s = sum(seconds) / len(seconds)
        say(f"{name}{len(seconds)} items · min {min(seconds):.2f} s · max {max(seconds):.2f} s · mean {mean_s:.2f} s")
        for line in found.notes:
            note(line)
        if found.left_out.count:
            note(found.left_out.line(most=len(found.left_out.first)))
        if file is not None:
            say(f"written: {', '.join(map(str, datasets.write_subset(found, choice, file)))}")


@app.command(cls=Command)
def score(
    files: list[Path] = typer.Argument(
        ...,
        metavar="FILE…",
        help="One file for each system: JSON lines with audio_filepath, duration, time, text and pred_text.",
    ),
    normaliser: str = typer.Option(
        "basic",
        "--normaliser",
        metavar="NAME",
        help="Text normaliser: english, basic or none, or an older version such as basic.v1.",
    ),
    format: str = format_option(*TABLE_FORMATS),
) -> None:
    """Print WER, CER and RTFx of each file, and the differences between them. Unusable lines are reported.

    \b
    Example:
      speechmeter data score whisper.jsonl parakeet.jsonl --normaliser english
    """
    from speechmeter.api.scoring import score_files

    found = score_files(files, normaliser)
    for line in found.bad_lines:
        note(f"left out: {line}")
    print_tables(found.tables(), format)
