"""`speechmeter shapes`: tables of (T frames, U tokens), made, converted and examined."""

from __future__ import annotations

from pathlib import Path

import typer

from speechmeter.cli.options import option_group
from speechmeter.cli.printing import note, print_tables, say

_tokens = option_group("How utterances are counted")
_batches = option_group("How batches are examined")


def shapes(
    source: Path | None = typer.Argument(
        None,
        metavar="SOURCE",
        help="A list of utterances, a folder of audio files, or a shape file.",
    ),
    output: Path | None = typer.Option(
        None,
        "-o",
        "--output",
        metavar="FILE",
        help="The shape file to write: shapes.pt or shapes.tsv.",
    ),
    generate: int | None = typer.Option(
        None,
        "--generate",
        metavar="N",
        min=1,
        help="Instead of SOURCE, generate N rows that resemble LibriSpeech train-clean-100 (85617 rows).",
    ),
    seed: int = typer.Option(0, "--seed", metavar="N", min=0, help="Seed of --generate."),
    bare: bool = typer.Option(False, "--bare", help="Write only the tensor, as transducer-loss-benchmarking reads it."),
    force: bool = typer.Option(False, "--force", help="Replace output files that exist."),
    tokens: str = _tokens(
        "field",
        "--tokens",
        metavar="UNIT",
        help="What to count as tokens: field (the utterance's own `tokens`), words or characters.",
    ),
    sentencepiece: Path | None = _tokens(
        None,
        "--sentencepiece",
        metavar="MODEL",
        help="Count the pieces of this SentencePiece model instead.",
    ),
    frames: str | None = _tokens(
        None,
        "--frames",
        metavar="KIND",
        help="Whether T counts subsampled or raw frames. The default is that of the shape file, otherwise subsampled.",
    ),
    shift_ms: float = _tokens(10.0, "--shift-ms", metavar="MS", min=1.0, help="Milliseconds between two raw frames."),
    format: str = _tokens("auto", "--format", metavar="FORMAT", help="Format of SOURCE, if it cannot be recognised."),
    root: Path | None = _tokens(None, "--root", metavar="DIR", help="The folder that paths in SOURCE are relative to."),
    batch: int = _batches(30, "--batch", metavar="N", min=1, help="Rows in a batch of fixed size."),
    max_frames: int | None = _batches(
        None,
        "--max-frames",
        metavar="N",
        min=1,
        help="Maximum number of frames in a batch, for batches of varying size. The default is 10000 subsampled or "
        "30000 raw frames.",
    ),
    first: int = _batches(
        0, "--first", metavar="N", min=0, help="Index of the first batch to examine, counted from 0."
    ),
    steps: int | None = _batches(
        None,
        "--steps",
        metavar="N",
        min=1,
        help="Number of batches to examine. The default is all.",
    ),
) -> None:
    """Make a table of shapes (frames T and tokens U) from a list or a generator.

    Print its quantiles, and the batches that it gives.

    \b
    Examples:
      speechmeter shapes train.tsv --tokens words -o shapes.tsv
      speechmeter shapes --generate 85617 -o shapes.pt
    """
    from speechmeter.api.datasets import shapes as make_shapes

    made = make_shapes(
        source, output=output, generate=generate, seed=seed, bare=bare, force=force, tokens=tokens,
        sentencepiece=sentencepiece, frames=frames, shift_s=shift_ms / 1000, format=format, root=root, batch=batch,
        max_frames=max_frames, first=first, steps=steps,
    )  # fmt: skip
    for line in made.notes:
        note(line)
    if output is not None:
        say(f"written: {output}")
    print_tables(made.tables, "table")
