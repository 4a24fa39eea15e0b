"""Files of strangers, read no further than to a limit: a small file may unpack to more than fits into memory."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from speechmeter.core.errors import InputError

MIB = 2**20
MOST_RATIO = 200
"""Lists and traces shrink to a fifth or a fiftieth. gzip can do 1000, on text that says nothing."""
_FROM_BYTES = 16 * MIB
"""Below this much unpacked text any ratio is harmless."""
_GZIP = b"\x1f\x8b"
_BLOCK = 2**16


@contextmanager
def opened(path: Path, most_bytes: int | None) -> Iterator[BinaryIO]:
    """The bytes of a plain or gzipped file, as they are asked for.

    Raises InputError where they are more than `most_bytes`, or many times what was packed, and where a gzipped file is
    damaged; OSError where the file cannot be read.
    """
    with path.open("rb") as file:
        packed = file.peek(len(_GZIP)).startswith(_GZIP)
        size = os.fstat(file.fileno()).st_size
        if most_bytes is not None and size > most_bytes:
            raise _too_large(path, most_bytes)
        try:
            yield cast(BinaryIO, io.BufferedReader(_Bounded(path, file, packed, most_bytes), _BLOCK))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(
                f"the gzipped file cannot be read to its end: {error}", where=str(path), fix="name a whole file"
            ) from error


def read_bytes(path: Path, most_bytes: int) -> bytes:
    """All bytes of a plain or gzipped file. Raises as `opened`."""
    with opened(path, most_bytes) as file:
        return file.read()


def read_text(path: Path, most_bytes: int) -> str:
    """All text of a plain or gzipped file in UTF-8, a mark at its beginning left out. Raises UnicodeDecodeError too."""
    return read_bytes(path, most_bytes).decode("utf-8-sig")


class _Bounded(io.RawIOBase):
    """The content of a file, which ends with an error where there is too much of it."""

    def __init__(self, path: Path, file: io.BufferedReader, packed: bool, most_bytes: int | None) -> None:
        self._path, self._file, self._most_bytes = path, file, most_bytes
        self._content: io.BufferedIOBase = gzip.GzipFile(fileobj=file) if packed else file
        self._packed, self._given = packed, 0

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill the buffer with what comes next; 0 at the end."""
        data = self._content.read(min(len(buffer), _BLOCK))
        buffer[: len(data)] = data
        self._given += len(data)
        if self._most_bytes is not None and self._given > self._most_bytes:
            raise _too_large(self._path, self._most_bytes)
        if self._packed and self._given > _FROM_BYTES and self._given > MOST_RATIO * self._file.tell():
            raise InputError(
                f"the gzipped file unpacks to over {MOST_RATIO} times its size, as no list or trace does",
                where=str(self._path),
                fix="unpack it yourself, and look at what it holds",
            )
        return len(data)


def _too_large(path: Path, most_bytes: int) -> InputError:
    size = f"{most_bytes // MIB} MiB" if most_bytes >= MIB else f"{most_bytes} bytes"
    return InputError(f"this holds more than {size}", where=str(path), fix="split it, or name another file")
