"""JSON lines on disk: whole lines appended and flushed, a torn last line recognised, damaged lines reported."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO

from speechmeter.core.errors import CannotGoOnError, StoreError
from speechmeter.core.printable import only_text

# Where a line may hold a control character. Most lines hold none, and are not searched further.
_UNPRINTABLE = re.compile(rb"\\(?:u00[01789]|u[dD][89a-fA-F]|[brf])|\x7f|\xc2[\x80-\x9f]")
LARGEST_LINE = 64 * 2**20
"""Bytes. A longer line is refused before it is parsed. The largest records of ours have a few million bytes."""
_TOO_LONG = f"the line is longer than {LARGEST_LINE >> 20} MiB, the most that a record may have"
_BLOCK = 2**16

KEPT = 100
"""How many reasons are kept, so that a file with millions of damaged lines takes no more memory than that."""
_NAMED = 5  # lines named in a note; the others are counted
_SHORT = 120


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """The damaged lines of a file, which were left out. `reasons` has the first `KEPT`, by line number from 1."""

    path: Path
    count: int
    reasons: Mapping[int, str]
    read: int

    @property
    def note(self) -> str:
        """One line for a person: how many lines, which, and why."""
        named = [
            f"line {number}: {reason if len(reason) <= _SHORT else f'{reason[:_SHORT]}…'}"
            for number, reason in list(self.reasons.items())[:_NAMED]
        ]
        named += [f"and {self.count - _NAMED} more"] if self.count > _NAMED else []
        were = "was" if self.count == 1 else "were"
        lines = f"{self.count} of {self.count + self.read} lines"
        return f"{self.path}: {lines} cannot be read and {were} skipped ({'; '.join(named)})"

    @property
    def first(self) -> str:
        """The first of them as `file:line: reason`."""
        number, reason = next(iter(self.reasons.items()))
        return f"{self.path}:{number}: {reason}"


def append_line(path: Path, data: Any) -> None:
    """Append one line and flush it to disk before returning; a line that does not fit is taken back.

    Raises CannotGoOnError where it cannot be written.
    """
    line = line_of(data)
    try:
        with path.open("ab", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            try:
                written = 0
                while written < len(line):  # a disk that is nearly full takes only a part
                    written += os.write(file.fileno(), line[written:])
                os.fsync(file.fileno())
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(file.fileno(), size)
                raise
    except OSError as error:
        raise CannotGoOnError(
            f"{path} cannot be written: {error.strerror}; free some disk space, then use `resume` to continue"
        ) from error


def as_read(data: Any) -> Any:
    """The data as a reader of its line gets it. Raises StoreError where JSON cannot hold it, or it is too long."""
    line = line_of(data)
    if len(line) > LARGEST_LINE:
        raise StoreError(_TOO_LONG)
    return json.loads(line)


def write_lines(path: Path, items: Iterable[Any]) -> None:
    """Write a new file with a line for each item. Raises OSError when it cannot."""
    with path.open("xb") as file:
        file.writelines(line_of(data) for data in items)


def line_of(data: Any) -> bytes:
    """The data as a line with its end. Raises StoreError where JSON cannot hold it."""
    try:
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (ValueError, TypeError, RecursionError) as error:
        raise StoreError(f"the record holds a value that JSON cannot store: {error}") from error
    return (text + "\n").encode(errors="replace")  # the name of a file may hold bytes that are not text


Skip = Callable[[int, str], None]
"""Gets the number of a line that cannot be read, and the reason."""


def read_lines(path: Path, skip: Skip) -> Iterator[tuple[int, Any]]:
    """(line number, data) of every whole line; one that cannot be read goes to `skip`.

    A last line without a line end is torn and left out.
    """
    with path.open("rb") as file:
        for number, line in whole_lines(file):
            try:
                data = parsed(line)
            except ValueError as error:
                skip(number, str(error))
            else:
                yield number, data


def whole_lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """(line number, line) of every non-empty line that has a line end. Of a line that is too long, its start."""
    for number in count(1):
        line = end = file.readline(LARGEST_LINE + 1)
        while len(end) > LARGEST_LINE and not end.endswith(b"\n"):  # read to its end, and not kept
            end = file.readline(LARGEST_LINE + 1)
        if not end.endswith(b"\n"):
            return
        if len(line) > LARGEST_LINE or line.strip():  # the start of a long line may be spaces alone
            yield number, line


def cut_torn_line(path: Path) -> int:
    """Cut what follows the last line end, as a kill in mid-write leaves it. Returns the number of bytes cut."""
    if not path.exists():
        return 0
    with path.open("rb+") as file:
        size = whole = file.seek(0, os.SEEK_END)
        end = -1
        while whole > 0 and end < 0:
            start = max(0, whole - _BLOCK)
            file.seek(start)
            end = file.read(whole - start).rfind(b"\n")
            whole = start + end + 1
        if whole < size:
            file.truncate(whole)
        return size - whole


def parsed(line: bytes) -> Any:
    """The data of a line, with control characters replaced by a mark. Raises ValueError with the reason."""
    if len(line) > LARGEST_LINE:
        raise ValueError(_TOO_LONG)
    try:
        # decoded here: json.loads takes bytes with NULs for UTF-16, in which the search below would see nothing
        data = _DECODER.decode(line.decode())
        return _printable(data) if may_steer(line) else data
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not a JSON line ({error})") from error


def may_steer(line: bytes) -> bool:
    """Whether the text of a line may hold control characters, which could steer a terminal."""
    if b"\\" in line or b"\x7f" in line or b"\xc2" in line:  # 60 times as fast as the search, on a line of 4 kB
        return _UNPRINTABLE.search(line) is not None
    return False


def _refuse(constant: str) -> None:
    raise ValueError(f"JSON does not support the number {constant}")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _printable(data: Any) -> Any:
    if isinstance(data, str):
        return only_text(data)
    if isinstance(data, list):
        return [_printable(one) for one in data]
    if isinstance(data, dict):
        return {_printable(key): _printable(one) for key, one in data.items()}
    return data
