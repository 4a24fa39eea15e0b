"""JSON lines on disk: whole lines appended and flushed, a torn last line recognised."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from speechmeter.core.errors import StoreError


def append_line(path: Path, data: Any) -> None:
    """Append one line and see it to the disk before returning."""
    try:
        with path.open("ab") as file:
            file.write(_line(data))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror}") from error


def write_lines(path: Path, items: Iterable[Any]) -> None:
    """Write a new file with a line for each item. Raises OSError when it cannot."""
    with path.open("xb") as file:
        file.writelines(_line(data) for data in items)


def _line(data: Any) -> bytes:
    return (json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n").encode()


def read_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """(line number, data) of every whole line. A last line without its end is torn and left out."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
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
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{path}:{number}: not a JSON line ({error})") from error
