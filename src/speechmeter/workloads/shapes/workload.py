"""`shapes`: batches of (T, U) only, from which a loss makes its tensors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

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
from speechmeter.workloads.shapes.table import FRAMES, RAW, SUBSAMPLED, SUBSAMPLINGS, USUAL_SUBSAMPLING


class ShapeWorkload:
    """`shapes`: rows of a shape file, or of the generator where no `file` is named."""

    axes = (
        Axis(name="max_frames", kind=int, default=None, minimum=1,
             help="maximum number of frames in a batch; use it instead of batch"),
        Axis(name="sort", kind=str, default=None, choices=SORTS,
             help="order of the rows by T, before batching (default: descending with max_frames, else none)"),
        Axis(name="pairing", kind=str, default=UTTERANCE, choices=PAIRINGS,
             help="utterance: T and U of a row stay together; columns: each is sorted separately"),
        Axis(name="subsampling", kind=int, default=USUAL_SUBSAMPLING, choices=SUBSAMPLINGS,
             help="number of raw frames per frame of T"),
        Axis(name="batch", kind=int, default=USUAL_BATCH, minimum=1, help=(
            "batch size: utterances (or other inputs) in a call"
        )),
    )  # fmt: skip
    options = (
        Option(name="file", kind=Path, help="a shape file, .pt or .tsv (default: generated shapes)"),
        Option(
            name="count",
            kind=int,
            minimum=1,
            help="number of rows to generate, or to read from the beginning of the file",
        ),
        Option(name="first", kind=int, default=0, minimum=0, help="number of the first batch, from 0"),
        Option(name="steps", kind=int, minimum=1, help="number of batches (default: all)"),
        Option(
            name="frames",
            kind=str,
            default=SUBSAMPLED,
            choices=FRAMES,
            help="whether T counts raw or subsampled frames",
        ),
    )

    def check(self, case: Case) -> None:
        """Options must make sense together, the file must hold shapes, and there must be a batch."""
        axes = case.axes
        if case.workload.options.get("frames") == RAW and axes["subsampling"] != USUAL_SUBSAMPLING:
            raise _refused("`subsampling` has no effect on raw frames", "leave out `subsampling` or `frames: raw`")
        if axes["max_frames"] is not None and axes["batch"] != USUAL_BATCH:
            raise _refused("`max_frames` and `batch` cannot be combined", "remove one of the two")
        if axes["pairing"] == COLUMNS and _rule(case).order == NONE:
            raise _refused("`pairing: columns` needs `sort`", "add `sort: descending`")
        _groups(case)

    def feeds(self, case: Case) -> Fed:
        """Shapes."""
        return Fed(kinds=(SHAPES,))

    def batches(self, case: Case) -> Batches:
        """Batches of shapes, each made when it is asked for."""
        return _ShapeBatches(_groups(case), _rule(case))


class _ShapeBatches(Batches):
    """Holds only the table; a batch is two columns of a few rows."""

    def __init__(self, groups: Groups, rule: Rule) -> None:
        self._groups = groups
        shapes = groups.shapes
        self.notes = (f"{len(shapes):,} rows of {shapes.origin}, {shapes.frames} frames; batches: {rule}",)

    def __len__(self) -> int:
        return len(self._groups)

    def one(self, index: int) -> Batch:
        """The batch with this number."""
        rows = self._groups.one(index)
        return Batch(
            data=rows,
            items=len(rows),
            ids=self._groups.ids(index),
            lengths=tuple(rows[:, 0].tolist()),
            targets=tuple(rows[:, 1].tolist()),
            facts=(
                Measurement.of(metrics.CELLS, [float(cells(rows))]),
                Measurement.of(metrics.CELLS_PADDED, [float(cells_padded(rows))]),
            ),
        )

    def outlines(self) -> Iterator[Batch]:
        """The batches themselves, since they are small."""
        return map(self.one, range(len(self)))

    def again(self) -> Iterator[Batch]:
        """The same, since there is nothing to load."""
        return self.outlines()


def _groups(case: Case) -> Groups:
    options, rule = case.workload.options, _rule(case)
    count = options.get("count")
    if count is not None and count > file.MOST_ROWS:
        raise _refused(f"count must be at most {file.MOST_ROWS:,}, not {count:,}", "lower count")
    if options.get("file") is not None:
        shapes = file.read(Path(options["file"])).first(count)
    else:
        shapes = generator.generate(count or generator.ROWS, case.protocol.seed)
    groups = grouped(shapes.counted_in(options.get("frames", SUBSAMPLED), int(case.axes["subsampling"])), rule)
    if not len(groups):
        raise _refused(f"{len(groups.shapes)} rows do not fill a batch of {rule.batch}", "lower batch, or add rows")
    taken = groups.taken(options.get("first", 0), options.get("steps"))
    if len(taken) < 1:
        raise _refused(
            f"`first` is {options['first']}, but the last batch has the number {len(groups) - 1}",
            "lower first",
        )
    return taken


def _rule(case: Case) -> Rule:
    axes = case.axes
    return Rule(batch=axes["batch"], max_frames=axes["max_frames"], sort=axes["sort"], pairing=axes["pairing"])


def _refused(what: str, fix: str) -> InputError:
    return InputError(what, key="shapes", fix=fix)
