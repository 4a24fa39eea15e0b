"""JSON lines on disk: whole lines appended and flushed, a torn last line recognised."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from speechmeter.core.errors import CannotGoOnError, StoreError

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_UNPRINTABLE = re.compile(rb"\\(?:u00[01789]|u[dD][89a-fA-F]|[brf])|\x7f|\xc2[\x80-\x9f]")
"""Where a line may hold such a character: most lines do not, and are not gone through."""
LARGEST_LINE = 64 * 2**20
"""Bytes; a longer line is refused before it is parsed. The largest records of ours have a few millions."""


def append_line(path: Path, data: Any) -> None:
    """Append one line and see it to the disk before returning; a line that does not fit is taken back."""
    try:
        with path.open("ab", buffering=0) as file:
            _append(file.fileno(), _line(data))
    except OSError as error:
        raise CannotGoOnError(
            f"{path}: cannot be written: {error.strerror}; what is finished is kept: make room, then add --resume"
        ) from error


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


def read_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """(line number, data) of every whole line. A last line without its end is torn and left out."""
    with path.open("rb") as file:
        for number in count(1):
            line = file.readline(LARGEST_LINE + 1)
            if len(line) > LARGEST_LINE:
                raise StoreError(f"{path}:{number}: a line of over {LARGEST_LINE >> 20} MiB is no record of ours")
            if not line.endswith(b"\n"):
                return
            if line.strip():
                yield number, _parse(line, path, number)


def ends_whole(path: Path) -> bool:
    """Whether the file is empty or ends with a line end: no torn last line."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        return file.read() in (b"", b"\n")


def cut_torn_line(path: Path) -> int:
    """Cut what follows the last line end, as a kill in mid-write leaves it; the number of bytes cut."""
    if not path.exists():
        return 0
    with path.open("rb+") as file:
        text = file.read()
        whole = text.rfind(b"\n") + 1
        if whole < len(text):
            file.truncate(whole)
        return len(text) - whole


def _parse(line: bytes, path: Path, number: int) -> Any:
    try:
        data = json.loads(line, parse_constant=_refuse)
        return _printable(data) if _UNPRINTABLE.search(line) else data
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{path}:{number}: not a JSON line ({error})") from error


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")


def _printable(data: Any) -> Any:
    """The same with a mark in the place of what is no text or would steer a terminal."""
    if isinstance(data, str):
        return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", data)
    if isinstance(data, list):
        return [_printable(one) for one in data]
    if isinstance(data, dict):
        return {_printable(key): _printable(one) for key, one in data.items()}
    return data
