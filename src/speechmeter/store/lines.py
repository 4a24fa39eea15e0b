"""JSON lines on disk: whole lines appended and flushed, a torn last line recognised."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO

from speechmeter.core.errors import CannotGoOnError, StoreError
from speechmeter.core.printable import only_text

_UNPRINTABLE = re.compile(rb"\\(?:u00[01789]|u[dD][89a-fA-F]|[brf])|\x7f|\xc2[\x80-\x9f]")
"""Where a line may hold a control character: most lines do not, and are not gone through."""
LARGEST_LINE = 64 * 2**20
"""Bytes; a longer line is refused before it is parsed. The largest records of ours have a few millions."""
_BLOCK = 2**16


def append_line(path: Path, data: Any) -> None:
    """Append one line and see it to the disk before returning; a line that does not fit is taken back."""
    try:
        with path.open("ab", buffering=0) as file:
            _append(file.fileno(), _line(data))
    except OSError as error:
        raise CannotGoOnError(f"{path}: cannot be written: {error.strerror}; make room, then add --resume") from error


def _append(file: int, line: bytes) -> None:
    size = os.fstat(file).st_size
    try:
        written = 0
        while written < len(line):  # a disk that is nearly full takes a part
            written += os.write(file, line[written:])
        os.fsync(file)
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(file, size)
        raise


def as_read(data: Any) -> Any:
    """The data as a reader of its line gets it. Raises StoreError where there is no such line, or it is too long."""
    line = _line(data)
    if len(line) > LARGEST_LINE:
        raise StoreError(f"a line of over {LARGEST_LINE >> 20} MiB is no record of ours")
    return json.loads(line)


def write_lines(path: Path, items: Iterable[Any]) -> None:
    """Write a new file with a line for each item. Raises OSError when it cannot."""
    with path.open("xb") as file:
        file.writelines(_line(data) for data in items)


def _line(data: Any) -> bytes:
    try:
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (ValueError, TypeError, RecursionError) as error:
        raise StoreError(f"a record holds what JSON does not have: {error}") from error
    return (text + "\n").encode(errors="replace")  # the name of a file may hold what is no text


Skip = Callable[[int, str], None]
"""Gets the number of a line that cannot be read, and the reason."""


def read_lines(path: Path, skip: Skip) -> Iterator[tuple[int, Any]]:
    """(line number, data) of every whole line; one that cannot be read goes to `skip`.

    A last line without its end is torn and left out.
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
    """(line number, line) of every line that has an end and holds something. Of a line that is too long, its start."""
    for number in count(1):
        line = end = file.readline(LARGEST_LINE + 1)
        while len(end) > LARGEST_LINE and not end.endswith(b"\n"):  # read to its end, and not kept
            end = file.readline(LARGEST_LINE + 1)
        if not end.endswith(b"\n"):
            return
        if len(line) > LARGEST_LINE or line.strip():  # the start of a long line may be spaces alone
            yield number, line


def cut_torn_line(path: Path) -> int:
    """Cut what follows the last line end, as a kill in mid-write leaves it; the number of bytes cut."""
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
    """The data of a line, with a mark in the place of control characters. Raises ValueError with the reason."""
    if len(line) > LARGEST_LINE:
        raise ValueError(f"a line of over {LARGEST_LINE >> 20} MiB is no record of ours")
    try:
        # decoded here: json.loads takes bytes with NULs for UTF-16, in which the search below would see nothing
        data = json.loads(line.decode(), parse_constant=_refuse)
        return _printable(data) if may_steer(line) else data
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not a JSON line ({error})") from error


def may_steer(line: bytes) -> bool:
    """Whether the text of a line may hold control characters."""
    if b"\\" in line or b"\x7f" in line or b"\xc2" in line:  # 60 times as fast as the search, on a line of 4 kB
        return _UNPRINTABLE.search(line) is not None
    return False


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")


def _printable(data: Any) -> Any:
    """The same with a mark in the place of what is no text or would steer a terminal."""
    if isinstance(data, str):
        return only_text(data)
    if isinstance(data, list):
        return [_printable(one) for one in data]
    if isinstance(data, dict):
        return {_printable(key): _printable(one) for key, one in data.items()}
    return data
