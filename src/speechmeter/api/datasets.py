"""Datasets: subsets of a list of utterances, anchors of speech, long streams, and tables of (T frames, U tokens)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor
from pathlib import Path

from speechmeter.core.errors import InputError
from speechmeter.core.files import check_free, written_by_user
from speechmeter.core.plugins import nearest
from speechmeter.report.tables import Cell, Row, Table
from speechmeter.workloads import anchors, selection
from speechmeter.workloads.anchors import Anchored, Tools
from speechmeter.workloads.manifests.columns import read_columns
from speechmeter.workloads.manifests.utterance import MIX
from speechmeter.workloads.manifests.write import check_format, companions, write, write_streams
from speechmeter.workloads.selection import FIRST, LONGEST, PICKS, RANDOM, SHORTEST, Choice, Selection, Watch, select
from speechmeter.workloads.shapes import file, generator
from speechmeter.workloads.shapes.batching import COLUMNS, PRESETS, Rule, batch_facts, grouped
from speechmeter.workloads.shapes.from_list import counted, from_list, pieces
from speechmeter.workloads.shapes.table import FRAMES, PERCENTS, SUBSAMPLED, Shapes, correlation, spreads
from speechmeter.workloads.sound import Taste

__all__ = ["anchor_tools", "find_anchors", "join_streams", "select", "shapes", "subsets", "write_subset"]

ALL = "all"
"""Random, shortest and longest: three subsets, a file each."""


def subsets(
    source: Path,
    *,
    output: Path | None = None,
    count: int | None = None,
    pick: str | None = None,
    ref_dataset: Path | None = None,
    seed: int = 0,
    format: str = "auto",
    root: Path | None = None,
    columns: str | None = None,
    longest_s: float = 3600.0,
    channel: str = MIX,
    force: bool = False,
) -> list[tuple[Choice, Path | None]]:
    """The subsets that are asked for, each with the file it goes to. Raises InputError before anything is read."""
    picks = (RANDOM, SHORTEST, LONGEST) if pick == ALL else (pick or (RANDOM if count is not None else FIRST),)
    if pick not in (None, ALL, *PICKS):
        raise InputError(f"unknown choice {pick!r}", key="pick", fix=nearest(pick, [*PICKS, ALL]))
    if count is None and picks != (FIRST,):
        raise InputError(f"{pick} needs a number of items", key="pick", fix="add it, for example `count: 500`")
    number = int(channel) if channel.isdecimal() else channel
    if isinstance(number, str) and number != MIX:
        raise InputError(f"must be `mix` or a channel number (the first is 0), not {channel!r}", key="channel")
    files = [output] * len(picks)
    if output is not None and len(picks) > 1:  # `set.npy` becomes `set-shortest.npy`, and so on
        files = [output.with_name(f"{output.stem}-{how}{output.suffix}") for how in picks]
    for named in filter(None, files):
        check_format(named)
        for path in (named, *companions(named)):
            check_free(path, force=force, makes_folder=True)
    try:
        ids = None if ref_dataset is None else selection.ids_of(ref_dataset)
    except InputError as error:
        error.key = "ref_dataset"
        raise
    taste = Taste(longest_s=longest_s, channel=number)
    choices = [
        Choice(
            manifest=source,
            format=format,
            root=root,
            columns=read_columns(columns),
            count=count,
            how=how,
            ids=ids,
            seed=seed,
            taste=taste,
        )
        for how in picks
    ]
    return list(zip(choices, files, strict=True))


def write_subset(found: Selection, choice: Choice, output: Path) -> list[Path]:
    """Write the chosen items as a list; the files that were written."""
    with written_by_user(output):
        written = write(output, found, choice.taste)
        for stale in set(companions(output)) - set(written):
            stale.unlink(missing_ok=True)
    return list(written)


def anchor_tools(source: Path, output: Path, *, detector: str, words: str, force: bool = False) -> Tools:
    """The tools that find anchors. Raises InputError before anything is read."""
    _check_json_lines(output, force)
    Choice(manifest=source).check()
    return anchors.tools(detector, words)


def find_anchors(source: Path, output: Path, use: Tools, *, watch: Watch = lambda done, of: None) -> Anchored:
    """Write the list with the start and end of speech of every item, and times of words where there is a text."""
    choice = Choice(manifest=source)
    found = anchors.anchored(select(choice), choice.taste, use, watch)
    with written_by_user(output):
        write(output, found.selection, choice.taste)
    return found


def join_streams(
    source: Path,
    output: Path,
    *,
    length_s: float,
    pause_s: float,
    force: bool = False,
    watch: Watch = lambda done, of: None,
) -> list[float]:
    """Write long streams of joined utterances as FLAC files with their list; the seconds of each stream."""
    _check_json_lines(output, force)
    choice = Choice(manifest=source)
    streams = anchors.joined(select(choice), choice.taste, length_s=length_s, pause_s=pause_s, watch=watch)
    with written_by_user(output):
        return write_streams(output, streams)


def _check_json_lines(output: Path, force: bool) -> None:
    if output.suffix != ".jsonl":
        raise InputError(f"the suffix of {output.name!r} is not supported", key="output", fix="end it with .jsonl")
    check_free(output, force=force, makes_folder=True)


@dataclass(frozen=True, kw_only=True)
class Examined:
    """Tables of quantiles and of batches, and notes on what was left out of a list."""

    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()


def shapes(
    source: Path | None,
    *,
    output: Path | None,
    generate: int | None,
    seed: int,
    bare: bool,
    force: bool,
    tokens: str,
    sentencepiece: Path | None,
    frames: str | None,
    shift_s: float,
    format: str,
    root: Path | None,
    batch: int,
    max_frames: int | None,
    first: int,
    steps: int | None,
) -> Examined:
    """Read, count or draw shapes, write them if `output` is given, and examine the batches made of them."""
    if (source is None) == (generate is None):
        raise InputError(
            "one source is needed", where="shapes", fix="give a list, a folder or a shape file, or `generate`"
        )
    if frames not in (None, *FRAMES):
        raise InputError(f"unknown kind of frames {frames!r}", key="frames", fix=nearest(frames, list(FRAMES)))
    if output is not None:
        check_free(output, force=force, makes_folder=True)
    notes: tuple[str, ...] = ()
    is_file = source is not None and file.is_shape_file(source)
    if source is None:
        found = generator.generate(generate or 0, seed)
    elif is_file:
        found = file.read(source)
    else:
        count = counted(tokens) if sentencepiece is None else pieces(sentencepiece)
        listed = from_list(source, count, format=format, root=root, shift_s=shift_s)
        found, left_out = listed.shapes, listed.left_out
        notes = (left_out.line(most=len(left_out.first)),) if left_out.count else ()
    table = found.counted_in(frames or (found.frames if is_file else SUBSAMPLED))
    if output is not None:
        with written_by_user(output):
            file.write(output, table, bare=bare)
    most = max_frames or PRESETS[table.frames]
    rules = [Rule(batch=batch), Rule(max_frames=most), Rule(max_frames=most, pairing=COLUMNS)]
    return Examined(tables=(_quantiles(table), _batches(table, rules, first, steps)), notes=notes)


def _quantiles(shapes: Shapes) -> Table:
    related = correlation(shapes)
    related_words = f" · correlation {related:.4f}" if related is not None else ""
    longer = int((shapes.rows[:, 1] > shapes.rows[:, 0]).sum())
    rows = []
    for spread in spreads(shapes):
        values = [f"{value:g}" if spread.name in "TU" else f"{value:.2f}" for value in spread.quantiles]
        sd = f"{spread.sd:.3f}" if spread.sd is not None else "–"
        rows.append(_row(spread.name, [f"{spread.mean:.3f}", sd, *values]))
    return Table(
        title=f"{len(shapes)} rows, {shapes.frames} frames{related_words} · rows with U > T: {longer}",
        metric=None,
        labels=("",),
        columns=("mean", "sd", *(f"{percent} %" for percent in PERCENTS)),
        rows=tuple(rows),
    )


def _batches(shapes: Shapes, rules: Sequence[Rule], first: int, steps: int | None) -> Table:
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
                f"{floor(facts.padded_mean + 0.5):,}",
                f"{facts.padded_largest:,} at {facts.largest_step}",
                f"{floor(facts.true_mean + 0.5):,}",
                f"{facts.waste:.1%}",
            ]
        rows.append(_row(str(rule), words + [""] * (len(columns) - len(words))))
    return Table(title="batches", metric=None, labels=("",), columns=columns, rows=tuple(rows))


def _row(label: str, words: Sequence[str]) -> Row:
    return Row(labels=(label,), cells=tuple(Cell(word=word) for word in words))


def _range(ends: tuple[int, int]) -> str:
    return str(ends[0]) if ends[0] == ends[1] else f"{ends[0]}–{ends[1]}"
