"""Kaldi's archives: matrices of features at `file.ark:OFFSET`, plain or compressed, read as Kaldi writes them."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from speechmeter.workloads.manifests.pickled import Stored

_MOST_VALUES = 2**28
"""Values of one matrix: a gibibyte of float32."""
_PLAIN = {b"FM ": "<f4", b"DM ": "<f8"}
_WITH_COLUMNS, _WORDS, _BYTES = b"CM ", b"CM2", b"CM3"
_QUARTERS = (64, 192)
"""A byte of a compressed matrix below, between and above these is in another part of its column's range."""


@dataclass(frozen=True, kw_only=True)
class ArkMatrix(Stored):
    """A matrix (frames, bands) of an archive that is not read yet."""

    path: Path
    offset: int

    def numpy(self) -> Any:
        """The matrix as float32. Raises ValueError with the reason."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                return _matrix(file)
        except (OSError, struct.error) as error:
            raise ValueError(f"{self.path}: {error}") from error


def split_place(value: str) -> tuple[str, int] | None:
    """(file, offset) of `feats.ark:123`; None for what has no offset."""
    path, colon, offset = value.rpartition(":")
    return (path, int(offset)) if colon and offset.isascii() and offset.isdigit() and len(offset) < 18 else None


def _matrix(file: BinaryIO) -> Any:
    import numpy as np

    if file.read(2) != b"\0B":
        raise ValueError("no binary matrix begins at this offset; archives of text are not read")
    kind = file.read(3)
    if kind in _PLAIN:
        (_, rows, _, columns), dtype = struct.unpack("<bibi", file.read(10)), np.dtype(_PLAIN[kind])
        return _values(file, rows, columns, dtype).astype(np.float32)
    if kind == _WITH_COLUMNS or (kind in (_WORDS, _BYTES) and file.read(1) == b" "):
        least, span, rows, columns = struct.unpack("<ffii", file.read(16))
        if kind == _WITH_COLUMNS:
            return _by_columns(file, least, span, rows, columns)
        dtype, steps = (np.dtype("<u2"), 65535) if kind == _WORDS else (np.dtype("u1"), 255)
        return least + _values(file, rows, columns, dtype).astype(np.float32) * np.float32(span / steps)
    raise ValueError(f"holds {kind!r}, which is not a matrix")


def _values(file: BinaryIO, rows: int, columns: int, dtype: Any) -> Any:
    import numpy as np

    if rows < 0 or columns < 0 or rows * columns > _MOST_VALUES:
        raise ValueError(f"says that it has {rows} × {columns} values")
    data = file.read(rows * columns * dtype.itemsize)
    if len(data) < rows * columns * dtype.itemsize:
        raise ValueError("is truncated")
    return np.frombuffer(data, dtype=dtype).reshape(rows, columns)


def _by_columns(file: BinaryIO, least: float, span: float, rows: int, columns: int) -> Any:
    """Each column has the values of its 0th, 25th, 75th and 100th percentile; a byte lies between two of them."""
    import numpy as np

    ends = least + _values(file, columns, 4, np.dtype("<u2")).astype(np.float32) * np.float32(span / 65535)
    raw = _values(file, columns, rows, np.dtype("u1")).astype(np.float32)
    lowest, lower, upper, highest = (end[:, None] for end in ends.T)
    low, high = _QUARTERS
    made = np.where(
        raw <= low,
        lowest + (lower - lowest) * raw / low,
        np.where(
            raw <= high,
            lower + (upper - lower) * (raw - low) / (high - low),
            upper + (highest - upper) * (raw - high) / (255 - high),
        ),
    )
    return np.ascontiguousarray(made.T, dtype=np.float32)
