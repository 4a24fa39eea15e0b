"""`speechmeter shapes`: tables of (T frames, U tokens), made, converted and looked at."""

from __future__ import annotations

import sys
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from speechmeter.cli.saying import say

if TYPE_CHECKING:
    from speechmeter.report.tables import Table
    from speechmeter.workloads.shapes.batching import Rule
    from speechmeter.workloads.shapes.table import Shapes


def shapes(
    source: Path | None = typer.Argument(
        None, help="A list of utterances, a folder of them, or a shape file.", show_default=False
    ),
    output: Path | None = typer.Option(None, "-o", "--output", help="shapes.pt or shapes.tsv.", show_default=False),
    generate: int | None = typer.Option(
        None, help="Draw so many rows after LibriSpeech train-clean-100 (it has 85617).", min=1, show_default=False
    ),
    seed: int = typer.Option(0, help="For --generate.", min=0),
    tokens: str = typer.Option("field", help="Tokens of an utterance: its field `tokens`, words or characters."),
    sentencepiece: Path | None = typer.Option(None, help="A model whose pieces are the tokens.", show_default=False),
    frames: str | None = typer.Option(
        None, help="What T counts: subsampled or raw frames; by default as in a shape file, else subsampled."
    ),
    shift_ms: float = typer.Option(10.0, help="Milliseconds from one raw frame of a list to the next.", min=1.0),
    format: str = typer.Option("auto", help="The format of a list, where it cannot be told."),
    root: Path | None = typer.Option(None, help="Where the paths of a list start.", show_default=False),
    bare: bool = typer.Option(False, "--bare", help="Write the tensor alone, as the original benchmark reads it."),
    batch: int = typer.Option(30, help="Rows in a batch of fixed size.", min=1),
    max_frames: int | None = typer.Option(
        None, help="Frames of a batch by frames; 10000 subsampled, 30000 raw by default.", min=1, show_default=False
    ),
    first: int = typer.Option(0, help="The first batch that is looked at.", min=0),
    steps: int | None = typer.Option(None, help="How many batches are looked at; all.", min=1, show_default=False),
    force: bool = typer.Option(False, "--force", help="Replace what stands at -o."),
) -> None:
    """Make a shape file of a list or by the generator; print quantiles, and what batching makes of it."""
    from speechmeter.cli.console import console_for
    from speechmeter.core.errors import InputError
    from speechmeter.core.files import check_free, written_by_user
    from speechmeter.report.terminal import draw
    from speechmeter.workloads.shapes import file, generator
    from speechmeter.workloads.shapes.batching import COLUMNS, PRESETS, Rule
    from speechmeter.workloads.shapes.table import FRAMES, SUBSAMPLED

    if (source is None) == (generate is None):
        raise InputError("give either a list, a shape file, or --generate", where="shapes", fix="see --help")
    if frames not in (None, *FRAMES):
        raise InputError(f"frames takes one of {', '.join(FRAMES)}, not {frames!r}", where="--frames")
    if output is not None:
        check_free(output, force=force, makes_folder=True)
    is_file = source is not None and file.is_shape_file(source)
    if source is None:
        found = generator.generate(generate or 0, seed)
    elif is_file:
        found = file.read(source)
    else:
        found = _listed(source, tokens, sentencepiece, format, root, shift_ms / 1000)
    table = found.counted_in(frames or (found.frames if is_file else SUBSAMPLED))
    if output is not None:
        with written_by_user(output):
            file.write(output, table, bare=bare)
        say(f"written: {output}")
    most = max_frames or PRESETS[table.frames]
    rules = [Rule(batch=batch), Rule(max_frames=most), Rule(max_frames=most, pairing=COLUMNS)]
    console = console_for(sys.stdout)
    draw([_quantiles(table), _batches(table, rules, first, steps)], console)


def _listed(source: Path, tokens: str, model: Path | None, format: str, root: Path | None, shift_s: float) -> Shapes:
    from speechmeter.workloads.shapes.from_list import counted, from_list, pieces

    count = counted(tokens) if model is None else pieces(model)
    listed = from_list(source, count, format=format, root=root, shift_s=shift_s)
    if listed.left_out.count:
        say(f"speechmeter: {listed.left_out.line(most=len(listed.left_out.first))}", err=True)
    return listed.shapes


def _quantiles(shapes: Shapes) -> Table:
    from speechmeter.report.tables import Cell, Row, Table
    from speechmeter.workloads.shapes.table import PERCENTS, correlation, spreads

    related = correlation(shapes)
    told = f" · correlation {related:.4f}" if related is not None else ""
    beyond = int((shapes.rows[:, 1] > shapes.rows[:, 0]).sum())
    title = f"{len(shapes)} rows, {shapes.frames} frames{told} · rows with U > T: {beyond}"
    rows = []
    for spread in spreads(shapes):
        values = [f"{value:g}" if spread.name in "TU" else f"{value:.2f}" for value in spread.quantiles]
        sd = f"{spread.sd:.3f}" if spread.sd is not None else "–"
        words = (f"{spread.mean:.3f}", sd, *values)
        rows.append(Row(labels=(spread.name,), cells=tuple(Cell(word=word) for word in words)))
    columns = ("mean", "sd", *(f"{percent} %" for percent in PERCENTS))
    return Table(title=title, metric=None, labels=("",), columns=columns, rows=tuple(rows))


def _batches(shapes: Shapes, rules: list[Rule], first: int, steps: int | None) -> Table:
    from speechmeter.report.tables import Cell, Row, Table
    from speechmeter.workloads.shapes.batching import batch_facts, grouped

    columns = ("batches", "steps", "N", "max T", "max U", "padded cells", "largest", "true cells", "waste")
    rows = []
    for rule in rules:
        groups = grouped(shapes, rule)
        taken = groups.taken(first, steps)
        words = [f"{len(groups):,}", "none"]
        if len(taken):
            facts = batch_facts(taken, first)
            words = [
                f"{len(groups):,}",
                _range((first, first + len(taken) - 1)),
                *map(_range, (facts.items, facts.frames, facts.tokens)),
                _whole(facts.padded_mean),
                f"{facts.padded_largest:,} at {facts.largest_step}",
                _whole(facts.true_mean),
                f"{facts.waste:.1%}",
            ]
        words += [""] * (len(columns) - len(words))
        rows.append(Row(labels=(str(rule),), cells=tuple(Cell(word=word) for word in words)))
    return Table(title="batches", metric=None, labels=("",), columns=columns, rows=tuple(rows))


def _whole(value: float) -> str:
    return f"{floor(value + 0.5):,}"


def _range(ends: tuple[int, int]) -> str:
    return str(ends[0]) if ends[0] == ends[1] else f"{ends[0]}–{ends[1]}"
