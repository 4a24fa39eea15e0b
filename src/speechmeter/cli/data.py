"""`speechmeter data`: subsets of a dataset, anchors of its speech, long streams, and scores of stored outputs."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from speechmeter.cli.options import TABLE_FORMATS, Command, format_option, one_of, option_group
from speechmeter.cli.printing import console_for, note, print_tables, say

_SUMMARY = "Make subsets of a dataset, find where speech is, join utterances, and score stored model outputs."
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
        help=(
            "How to choose them: first, random (the default with --count), shortest or longest. all "
            "writes three files: random, shortest and longest."
        ),
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
    columns: str | None = _reading(
        None,
        "--columns",
        metavar="NAMES",
        help="Columns of a Hugging Face dataset, such as audio=speech,text=sentence,id=utt,speaker=spk.",
    ),
    channel: str = _reading(
        "mix", "--channel", metavar="N", help="Channel to read (the first is 0), or mix: the mean of all channels."
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
    from speechmeter.api.progress import counting

    subsets = datasets.subsets(
        source, output=output, count=count, pick=pick, ref_dataset=ref_dataset, seed=seed, format=format, root=root,
        columns=columns, longest_s=longest, channel=channel, force=force,
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


_list = typer.Option(
    ..., "-o", "--output", metavar="FILE", help="The list to write, such as set.jsonl.", show_default=False
)
_force = typer.Option(False, "--force", help="Replace output files that exist.")


@app.command("anchors", cls=Command)
def find_anchors(
    source: Path = typer.Argument(
        ..., metavar="SOURCE", help="A list of utterances, or a folder of audio files.", show_default=False
    ),
    output: Path = _list,
    detector: str = typer.Option(
        "silero",
        "--detector",
        metavar="NAME",
        help="How to find the start and the end of speech: silero (a voice activity detector) or energy (loudness).",
    ),
    words: str = typer.Option(
        "pocketsphinx",
        "--words",
        metavar="NAME",
        help="How to find the times of words, if the list has texts: pocketsphinx (English) or none.",
    ),
    force: bool = _force,
) -> None:
    """Find where speech starts and ends in each recording, and when each word is said, and write that to a new list.

    Live delays count from these moments. They are found once, so that all systems share them. Moments that the list
    already has are kept.

    \b
    Example:
      speechmeter data anchors test.jsonl -o test-anchors.jsonl
    """
    from speechmeter.api import datasets
    from speechmeter.api.progress import counting

    use = datasets.anchor_tools(source, output, detector=detector, words=words, force=force)
    with counting(console_for(sys.stderr), "finding speech") as watch:
        found = datasets.find_anchors(source, output, use, watch=watch)
    items = [item.utterance.anchors for item in found.selection.items]
    with_words = sum(1 for one in items if one.words)
    say(f"{len(items)} items · {len(items) - len(found.silent)} with speech · {with_words} with times of words")
    for name in found.silent:
        note(f"{name}: no speech found")
    for name, reason in found.unaligned:
        note(f"{name}: no times of words: {reason}")
    if found.selection.left_out.count:
        note(found.selection.left_out.line(most=len(found.selection.left_out.first)))
    say(f"written: {output}")


@app.command(cls=Command)
def join(
    source: Path = typer.Argument(
        ..., metavar="SOURCE", help="A list of utterances, or a folder of audio files.", show_default=False
    ),
    output: Path = _list,
    length: float = typer.Option(
        60.0,
        "--length",
        metavar="SECONDS",
        min=1,
        help="Minimum length of a stream in seconds. The last stream may be shorter.",
    ),
    pause: float = typer.Option(
        1.0, "--pause", metavar="SECONDS", min=0, max=60, help="Silence between two utterances, in seconds."
    ),
    force: bool = _force,
) -> None:
    """Join utterances with pauses to long streams, which show whether a live system keeps up.

    The streams are FLAC files in a folder named after the list. Texts and anchors are carried over.

    \b
    Example:
      speechmeter data join test-anchors.jsonl --length 120 -o long.jsonl
    """
    from speechmeter.api import datasets
    from speechmeter.api.progress import counting

    with counting(console_for(sys.stderr), "joining") as watch:
        seconds = datasets.join_streams(source, output, length_s=length, pause_s=pause, force=force, watch=watch)
    say(f"{len(seconds)} streams · min {min(seconds):.1f} s · max {max(seconds):.1f} s")
    say(f"written: {output} and {output.with_suffix('')}/")


@app.command(cls=Command)
def manifest(
    run: Path = typer.Argument(..., metavar="RUN", help="A run directory.", show_default=False),
    output: Path = typer.Option(
        ..., "-o", "--output", metavar="FOLDER", help="The folder to write the manifests to.", show_default=False
    ),
    dataset: str = typer.Option(
        ...,
        "--dataset",
        metavar="NAME",
        help="Name of the dataset, such as librispeech_test.clean.",
        show_default=False,
    ),
    force: bool = _force,
) -> None:
    """Write result manifests of the Open ASR Leaderboard from a run: one file for each model.

    A case is written if each call held one utterance, so the time of an utterance is that of its own call.

    \b
    Example:
      speechmeter data manifest runs/laptop --dataset librispeech_test.clean -o results
    """
    from speechmeter.api.leaderboard import write_manifests

    for path in write_manifests(run, output, dataset, force=force):
        say(f"written: {path}")


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
    profile: str | None = typer.Option(
        None,
        "--profile",
        metavar="NAME",
        help="Score as a leaderboard does: open-asr. A file is one of its result manifests, or a run.",
        callback=one_of("open-asr"),
    ),
    differences: int = typer.Option(
        0,
        "--differences",
        metavar="N",
        min=0,
        help="With --profile: list N utterances that the leaderboard's normaliser and --normaliser score differently.",
    ),
    format: str = format_option(*TABLE_FORMATS),
) -> None:
    """Print WER, CER and RTFx of each file, and the differences between them. Unusable lines are reported.

    \b
    Example:
      speechmeter data score whisper.jsonl parakeet.jsonl --normaliser english
    """
    from speechmeter.api.scoring import score_files

    if profile is not None:
        from speechmeter.api.leaderboard import score_manifests

        print_tables(score_manifests(files, normaliser=normaliser, differences=differences), format)
        return
    if differences:
        from speechmeter.core.errors import InputError

        raise InputError("it needs a profile", key="differences", fix="add `profile: open-asr`")
    found = score_files(files, normaliser)
    for line in found.bad_lines:
        note(f"left out: {line}")
    print_tables(found.tables(), format)
