"""Rows of (T frames, U tokens), and how frames become fewer by subsampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from speechmeter.core.errors import InputError

RAW, SUBSAMPLED = "raw", "subsampled"
FRAMES = (RAW, SUBSAMPLED)
"""What T counts: frames of the front-end, 10 ms each, or what is left of them after 4× subsampling."""
LONGEST = 1_000_000
"""More frames or tokens in a row are refused: no utterance is that long, and the cells of a batch would overflow."""
USUAL_SUBSAMPLING = 4
_HALVINGS = {4: 2, 8: 3}
SUBSAMPLINGS = tuple(_HALVINGS)


@dataclass(frozen=True, kw_only=True)
class Shapes:
    """`rows` is an int32 array (rows, 2) of T and U; `frames` says what T counts, `origin` where they are from."""

    rows: Any
    frames: str
    origin: str = ""

    def __len__(self) -> int:
        return len(self.rows)

    def first(self, count: int | None) -> Shapes:
        """The first so many rows; all of them for None."""
        return Shapes(rows=self.rows[:count], frames=self.frames, origin=self.origin)

    def counted_in(self, frames: str, subsampling: int = USUAL_SUBSAMPLING) -> Shapes:
        """The same utterances with T in the wanted frames.

        Raises InputError where raw frames are wanted of subsampled ones, or where nothing is left of a row.
        """
        if frames == RAW and self.frames == SUBSAMPLED:
            raise InputError(
                f"{self.origin or 'the file'} holds subsampled frames, from which raw ones cannot be had",
                where="shapes",
                fix="leave out frames: raw, or make the file with --frames raw",
            )
        if frames == RAW:
            return self
        times = _HALVINGS[subsampling] - (0 if self.frames == RAW else _HALVINGS[USUAL_SUBSAMPLING])
        rows = self.rows.copy()
        rows[:, 0] = halved(rows[:, 0], times)
        gone = int((rows[:, 0] < 1).sum())
        if gone:
            raise InputError(
                f"{gone} of {len(rows)} rows are too short: no frame is left of them after {subsampling}× subsampling",
                where="shapes",
                fix="take these rows out of the file",
            )
        return Shapes(rows=rows, frames=SUBSAMPLED, origin=self.origin)


def halved(frames: Any, times: int = _HALVINGS[USUAL_SUBSAMPLING]) -> Any:
    """Frames after so many convolutions of width 3 and stride 2 without padding: n becomes (n − 1)//2 each time."""
    for _ in range(times):
        frames = (frames - 1) // 2
    return frames
