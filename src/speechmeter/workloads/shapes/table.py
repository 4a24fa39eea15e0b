"""Rows of (T frames, U tokens): how subsampling makes frames fewer, and the distribution of the columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from speechmeter.core.errors import InputError, command_line

RAW, SUBSAMPLED = "raw", "subsampled"
FRAMES = (RAW, SUBSAMPLED)
"""What T counts: frames of the front-end, 10 ms each, or the frames that are left after 4× subsampling."""
LONGEST = 1_000_000
"""Rows with more frames or tokens are refused: no utterance is that long, and the cells of a batch would overflow."""
USUAL_SUBSAMPLING = 4
_HALVINGS = {4: 2, 8: 3}
SUBSAMPLINGS = tuple(_HALVINGS)
PERCENTS = (0, 1, 5, 25, 50, 75, 95, 99, 100)


@dataclass(frozen=True, kw_only=True)
class Shapes:
    """`rows` is an int32 array (rows, 2) of T and U; `frames` is what T counts, `origin` the source of the rows."""

    rows: Any
    frames: str
    origin: str = ""

    def __len__(self) -> int:
        return len(self.rows)

    def first(self, count: int | None) -> Shapes:
        """The first `count` rows; all of them for None."""
        return Shapes(rows=self.rows[:count], frames=self.frames, origin=self.origin)

    def counted_in(self, frames: str, subsampling: int = USUAL_SUBSAMPLING) -> Shapes:
        """The same utterances with T in the wanted frames.

        Raises InputError where raw frames are wanted of subsampled ones, or where nothing is left of a row.
        """
        if frames == RAW and self.frames == SUBSAMPLED:
            raise InputError(
                f"{self.origin or 'the file'} holds subsampled frames, which cannot be turned into raw ones",
                key="shapes",
                fix=f"leave out `frames: raw`, or create the file again: {command_line('shapes', 'LIST', frames=RAW)}",
            )
        if frames == RAW:
            return self
        times = _HALVINGS[subsampling] - (0 if self.frames == RAW else _HALVINGS[USUAL_SUBSAMPLING])
        rows = self.rows.copy()
        rows[:, 0] = halved(rows[:, 0], times)
        gone = int((rows[:, 0] < 1).sum())
        if gone:
            raise InputError(
                f"{gone} of {len(rows)} rows are too short: they have no frame left after {subsampling}× subsampling",
                key="shapes",
                fix="remove these rows from the file",
            )
        return Shapes(rows=rows, frames=SUBSAMPLED, origin=self.origin)


def halved(frames: Any, times: int = _HALVINGS[USUAL_SUBSAMPLING]) -> Any:
    """Frames after `times` convolutions of width 3 and stride 2 without padding: n becomes (n − 1)//2 each time."""
    for _ in range(times):
        frames = (frames - 1) // 2
    return frames


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Mean, sample standard deviation (None of a single row) and the quantiles at `PERCENTS` of one column."""

    name: str
    mean: float
    sd: float | None
    quantiles: tuple[float, ...]


def spreads(shapes: Shapes) -> list[Spread]:
    """T, U and T/U, the last over rows that have tokens."""
    import numpy as np

    frames, tokens = shapes.rows[:, 0], shapes.rows[:, 1]
    some = tokens > 0
    columns = {"T": frames, "U": tokens, **({"T/U": frames[some] / tokens[some]} if some.any() else {})}
    return [
        Spread(
            name=name,
            mean=float(column.mean()),
            sd=float(column.std(ddof=1)) if len(column) > 1 else None,
            quantiles=tuple(float(value) for value in np.percentile(column, PERCENTS)),
        )
        for name, column in columns.items()
    ]


def correlation(shapes: Shapes) -> float | None:
    """Pearson's correlation of T and U; None where one of them does not vary."""
    import numpy as np

    frames, tokens = shapes.rows[:, 0], shapes.rows[:, 1]
    return float(np.corrcoef(frames, tokens)[0, 1]) if frames.std() > 0 and tokens.std() > 0 else None
