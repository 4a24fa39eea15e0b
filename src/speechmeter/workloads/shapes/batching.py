"""Which rows of a table of shapes are fed together, and what their padding costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from speechmeter.core.axes import NONE
from speechmeter.workloads.batching import DESCENDING
from speechmeter.workloads.shapes.table import RAW, SUBSAMPLED, Shapes

UTTERANCE, COLUMNS = "utterance", "columns"
PAIRINGS = (UTTERANCE, COLUMNS)
USUAL_BATCH = 30
PRESETS = {SUBSAMPLED: 10_000, RAW: 30_000}
"""`max_frames` of the classic studies, by what T counts."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How rows become batches: `batch` of them, or as many as have `max_frames` frames together.

    `sort` absent is descending with `max_frames`, and the order of the file otherwise.
    """

    batch: int = USUAL_BATCH
    max_frames: int | None = None
    sort: str | None = None
    pairing: str = UTTERANCE

    @property
    def order(self) -> str:
        """The sort that is used."""
        return self.sort or (NONE if self.max_frames is None else DESCENDING)

    def __str__(self) -> str:
        size = f"{self.batch} rows each" if self.max_frames is None else f"at most {self.max_frames:,} frames each"
        return f"{size}, {'file order' if self.order == NONE else f'{self.order}, {self.pairing}'}"


@dataclass(frozen=True, kw_only=True)
class Groups:
    """Rows in the order they are fed, T and U each with its own row number, and the edges between the batches."""

    shapes: Shapes
    frame_rows: Any
    token_rows: Any
    edges: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.edges) - 1

    def one(self, index: int) -> Any:
        """The shapes of a batch: an int32 array (items, 2)."""
        import numpy as np

        part = slice(self.edges[index], self.edges[index + 1])
        rows = self.shapes.rows
        return np.stack([rows[self.frame_rows[part], 0], rows[self.token_rows[part], 1]], axis=1)

    def ids(self, index: int) -> tuple[str, ...]:
        """`row-7`; `row-7+row-3` where T is that of row 7 and U that of row 3."""
        part = slice(self.edges[index], self.edges[index + 1])
        pairs = zip(self.frame_rows[part].tolist(), self.token_rows[part].tolist(), strict=True)
        return tuple(f"row-{t}" if t == u else f"row-{t}+row-{u}" for t, u in pairs)

    def taken(self, first: int, steps: int | None) -> Groups:
        """`steps` batches from number `first` on; all that follow for None."""
        end = len(self) if steps is None else min(first + steps, len(self))
        edges = self.edges[min(first, end) : end + 1]
        return Groups(shapes=self.shapes, frame_rows=self.frame_rows, token_rows=self.token_rows, edges=edges)


def grouped(shapes: Shapes, rule: Rule) -> Groups:
    """The batches of a pass. With a fixed size, rows that do not fill the last batch are left out."""
    frame_rows = _order(shapes.rows[:, 0], rule.order)
    token_rows = _order(shapes.rows[:, 1], rule.order) if rule.pairing == COLUMNS else frame_rows
    if rule.max_frames is None:
        edges: Sequence[int] = range(0, len(shapes) + 1, rule.batch)
    else:
        # each batch holds as many rows as fit; a row that is longer is one batch
        frames = shapes.rows[frame_rows, 0].tolist()
        edges, held = [0], 0
        for row, length in enumerate(frames):
            if held and held + length > rule.max_frames:
                edges.append(row)
                held = 0
            held += length
        edges = [*edges, len(frames)]
    return Groups(shapes=shapes, frame_rows=frame_rows, token_rows=token_rows, edges=tuple(edges))


def _order(lengths: Any, sort: str) -> Any:
    """Row numbers; rows of equal length keep the order of the file."""
    import numpy as np

    if sort == NONE:
        return np.arange(len(lengths))
    return np.argsort(-lengths if sort == DESCENDING else lengths, kind="stable")


def cells(rows: Any) -> int:
    """Cells of the lattices of a batch: the sum of T × (U + 1)."""
    return int((rows[:, 0].astype("int64") * (rows[:, 1].astype("int64") + 1)).sum())


def cells_padded(rows: Any) -> int:
    """Cells of a batch that is padded to its longest: items × largest T × (largest U + 1)."""
    return len(rows) * int(rows[:, 0].max()) * (int(rows[:, 1].max()) + 1)


@dataclass(frozen=True, kw_only=True)
class BatchFacts:
    """Figures of batches; pairs are the least and the largest. `largest_step` counts from the start of the pass."""

    batches: int
    items: tuple[int, int]
    frames: tuple[int, int]
    tokens: tuple[int, int]
    padded_mean: float
    padded_largest: int
    largest_step: int
    true_mean: float

    @property
    def waste(self) -> float:
        """The share of padded cells that are padding."""
        return 1 - self.true_mean / self.padded_mean


def batch_facts(groups: Groups, first: int = 0) -> BatchFacts:
    """The figures of all batches; `first` is the number of the first of them in its pass."""
    rows = [groups.one(index) for index in range(len(groups))]
    true, padded = [cells(part) for part in rows], [cells_padded(part) for part in rows]
    longest = [[int(part[:, column].max()) for part in rows] for column in (0, 1)]
    return BatchFacts(
        batches=len(rows),
        items=(min(map(len, rows)), max(map(len, rows))),
        frames=(min(longest[0]), max(longest[0])),
        tokens=(min(longest[1]), max(longest[1])),
        padded_mean=sum(padded) / len(padded),
        padded_largest=max(padded),
        largest_step=first + padded.index(max(padded)),
        true_mean=sum(true) / len(true),
    )
