"""`shapes`: batches of (T, U) alone, from which a loss makes its tensors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.axes import NONE, Axis, Option
from speechmeter.core.batches import Batches
from speechmeter.core.errors import InputError
from speechmeter.core.protocols import SHAPES, Fed
from speechmeter.core.types import Batch, Case, Measurement
from speechmeter.workloads.batching import SORTS
from speechmeter.workloads.shapes import file, generator
from speechmeter.workloads.shapes.batching import (
    COLUMNS,
    PAIRINGS,
    USUAL_BATCH,
    UTTERANCE,
    Groups,
    Rule,
    cells,
    cells_padded,
    grouped,
)
from speechmeter.workloads.shapes.table import FRAMES, RAW, SUBSAMPLED, SUBSAMPLINGS, USUAL_SUBSAMPLING, Shapes

_EXAMPLE = "for example shapes: {file: shapes.pt, first: 20, steps: 20}"


class ShapeWorkload:
    """`shapes`: rows of a shape file, or of the generator where no `file` is named.

    Options: `count` rows that are made, or taken from the file's beginning; `steps` batches from number `first` on;
    `frames`, what T counts.
    """

    axes = (
        Axis(name="max_frames", kind=int, default=None, minimum=1,
             help="frames of all items of a call together, in place of batch"),
        Axis(name="sort", kind=str, default=None, choices=SORTS,
             help="rows by T before they are batched; absent: descending with max_frames, else none"),
        Axis(name="pairing", kind=str, default=UTTERANCE, choices=PAIRINGS,
             help="utterance: T and U of a row stay together; columns: each is sorted on its own"),
        Axis(name="subsampling", kind=int, default=USUAL_SUBSAMPLING, choices=SUBSAMPLINGS,
             help="how many raw frames make one of T"),
        Axis(name="batch", kind=int, default=USUAL_BATCH, minimum=1, help="items in a call"),
    )  # fmt: skip
    options = (
        Option(name="file"),
        Option(name="count"),
        Option(name="first"),
        Option(name="steps"),
        Option(name="frames"),
    )

    def check(self, case: Case) -> None:
        """Options must make sense together, the file must be one of shapes, and a batch must come of it."""
        _check_options(case)
        _groups(case)

    def feeds(self, case: Case) -> Fed:
        """Shapes."""
        return Fed(kinds=(SHAPES,))

    def batches(self, case: Case) -> Batches:
        """Batches of shapes, each made in its turn."""
        return _ShapeBatches(_groups(case), _rule(case))


class _ShapeBatches(Batches):
    """Only the table is held; a batch is two columns of a few rows."""

    def __init__(self, groups: Groups, rule: Rule) -> None:
        self._groups = groups
        shapes = groups.shapes
        self.notes = (f"{len(shapes):,} rows of {shapes.origin}, {shapes.frames} frames; batches: {rule}",)

    def __len__(self) -> int:
        return len(self._groups)

    def one(self, place: int) -> Batch:
        """The batch with this number."""
        rows = self._groups.one(place)
        return Batch(
            data=rows,
            items=len(rows),
            ids=self._groups.ids(place),
            lengths=tuple(rows[:, 0].tolist()),
            targets=tuple(rows[:, 1].tolist()),
            facts=(
                Measurement.of(metrics.CELLS, [float(cells(rows))]),
                Measurement.of(metrics.CELLS_PADDED, [float(cells_padded(rows))]),
            ),
        )

    def outlines(self) -> Iterator[Batch]:
        """The batches themselves: they are small."""
        return map(self.one, range(len(self)))

    def again(self) -> Iterator[Batch]:
        """The same: there is nothing to load."""
        return self.outlines()


def _groups(case: Case) -> Groups:
    options, subsampling = case.workload.options, int(case.axes["subsampling"])
    frames = options.get("frames", SUBSAMPLED)
    rule = _rule(case)
    groups = grouped(_shapes(case).counted_in(frames, subsampling), rule)
    if not len(groups):
        raise _refused(f"{len(groups.shapes)} rows make no batch of {rule.batch}", "lower batch, or take more rows")
    taken = groups.taken(options.get("first", 0), options.get("steps"))
    if len(taken) < 1:
        raise _refused(f"first is {options['first']}, and there are {len(groups)} batches", "they count from 0 on")
    return taken


def _rule(case: Case) -> Rule:
    axes = case.axes
    return Rule(batch=axes["batch"], max_frames=axes["max_frames"], sort=axes["sort"], pairing=axes["pairing"])


def _shapes(case: Case) -> Shapes:
    options = case.workload.options
    if "file" in options:
        return file.read(Path(options["file"])).first(options.get("count"))
    return generator.generate(options.get("count", generator.ROWS), case.protocol.seed)


def _check_options(case: Case) -> None:
    options, axes = case.workload.options, case.axes
    if not isinstance(options.get("file", "-"), str):
        raise _refused(f"file takes a path, not {options['file']!r}", _EXAMPLE)
    for name, least in (("count", 1), ("first", 0), ("steps", 1)):
        value: Any = options.get(name, least)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= file.MOST_ROWS:
            raise _refused(f"{name} takes a whole number from {least} on, not {value!r}", _EXAMPLE)
    frames = options.get("frames", SUBSAMPLED)
    if frames not in FRAMES:
        raise _refused(f"frames takes one of {', '.join(FRAMES)}, not {frames!r}", _EXAMPLE)
    if frames == RAW and axes["subsampling"] != USUAL_SUBSAMPLING:
        raise _refused("raw frames are not subsampled", "leave out subsampling, or frames: raw")
    if axes["max_frames"] is not None and axes["batch"] != USUAL_BATCH:
        raise _refused("max_frames and batch exclude each other", f"leave batch at {USUAL_BATCH} with max_frames")
    if axes["pairing"] == COLUMNS and _rule(case).order == NONE:
        raise _refused("pairing: columns sorts T and U, and nothing is sorted here", "add sort: descending")


def _refused(what: str, fix: str) -> InputError:
    return InputError(what, where="shapes", fix=fix)
