"""Sound inside a larger file: most containers come down to a file, an offset and a size; tables to a row of a column.

Nothing is unpacked to disk, so no name in a container can lead anywhere.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from speechmeter.core.files import MIB

LARGEST_SOUND = 1024 * MIB
"""Bytes of one item. It is held as a whole while it is decoded."""
_LARGEST_GROUP = 4096 * MIB
_RIFF = struct.Struct("<4sI")
_UNKNOWN_SIZES = (0, 0xFFFFFFFF)
"""What a WAV header has in the place of its size where that was not known when it was written."""


class Inside(ABC):
    """Where the bytes of one sound are in its file."""

    @abstractmethod
    def read(self, path: Path) -> bytes:
        """The bytes of the sound. Raises ValueError with the reason, or OSError."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Slice(Inside):
    """So many bytes from an offset on; without a size a WAV file, whose header has its size."""

    offset: int
    size: int | None = None

    def read(self, path: Path) -> bytes:
        """The slice. Raises ValueError where the file ends before it does."""
        with path.open("rb") as file:
            file.seek(self.offset)
            size = _wav_size(file.read(_RIFF.size)) if self.size is None else self.size
            if size > LARGEST_SOUND:
                raise ValueError(f"has {size:,} bytes, more than {LARGEST_SOUND:,}")
            file.seek(self.offset)
            data = file.read(size)
        if len(data) < size:
            raise ValueError(f"is truncated: {path.name} has {len(data):,} of its {size:,} bytes")
        return data


def _wav_size(head: bytes) -> int:
    if len(head) < _RIFF.size or not head.startswith(b"RIFF"):
        raise ValueError("at this offset no WAV file begins")
    size = int(_RIFF.unpack(head)[1])
    if size in _UNKNOWN_SIZES:
        raise ValueError("its WAV header does not say how long it is")
    return size + _RIFF.size


@dataclass(frozen=True, kw_only=True, slots=True)
class ParquetCell(Inside):
    """A row of a group of a Parquet file, in a column of bytes or of mappings with `bytes`."""

    group: int
    row: int
    column: str

    def read(self, path: Path) -> bytes:
        """The bytes of the cell. Raises ValueError where there are none."""
        return _bytes_of(_parquet_group(str(path), path.stat().st_mtime_ns, self.group, self.column)[self.row])


@dataclass(frozen=True, kw_only=True, slots=True)
class ArrowCell(Inside):
    """A row of an Arrow stream, which `datasets` writes with `save_to_disk`."""

    row: int
    column: str

    def read(self, path: Path) -> bytes:
        """The bytes of the cell. Raises ValueError where there are none."""
        return _bytes_of(arrow_table(str(path), path.stat().st_mtime_ns)[self.column][self.row])


def _bytes_of(cell: Any) -> bytes:
    value = cell["bytes"] if hasattr(cell, "keys") and cell.is_valid else cell
    size = value.as_buffer().size if value.is_valid and hasattr(value, "as_buffer") else 0
    if not size:
        raise ValueError("holds no bytes of sound")
    if size > LARGEST_SOUND:
        raise ValueError(f"has {size:,} bytes, more than {LARGEST_SOUND:,}")
    return bytes(value.as_py())


@lru_cache(maxsize=1)
def _parquet_group(path: str, _changed_ns: int, group: int, column: str) -> Any:
    """A column of a row group, kept for the next row. Its size is checked before it is unpacked."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            size = sum(
                one.total_uncompressed_size
                for index in range(file.metadata.num_columns)
                if (one := file.metadata.row_group(group).column(index)).path_in_schema.split(".")[0] == column
            )
            if size > _LARGEST_GROUP:
                raise ValueError(
                    f"its row group unpacks to {size / 2**30:.1f} GiB, more than {_LARGEST_GROUP >> 30} GiB"
                )
            return file.read_row_group(group, columns=[column])[column]
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"the Parquet file is damaged: {' '.join(str(error).split())}") from error


@lru_cache(maxsize=2)
def arrow_table(path: str, _changed_ns: int) -> Any:
    """An Arrow stream as a table that is mapped, not read. Raises ValueError where it is none."""
    import pyarrow as pa

    try:
        return pa.ipc.open_stream(pa.memory_map(path)).read_all()
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"the Arrow file is damaged: {' '.join(str(error).split())}") from error
