"""Text files read a line at a time, however long they are: plain or gzip, JSON lines, or one large JSON object."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from speechmeter.core.errors import InputError

LONGEST_BYTES = 1 << 20
"""A longer line, or a larger item of one JSON object, is refused."""
_CHUNK = 1 << 16
_SPACE = " \t\r\n"


def numbered_lines(path: Path) -> Iterator[tuple[int, str | None]]:
    """(number from 1 on, line without its end); None for a line that is too long or is not UTF-8.

    Raises InputError when the file cannot be read at all.
    """
    try:
        with _opened(path) as file:
            number, cut = 0, False
            while raw := file.readline(LONGEST_BYTES):
                number, continues = (number if cut else number + 1), cut
                cut = not raw.endswith(b"\n") and len(raw) == LONGEST_BYTES
                if not continues:
                    yield number, None if cut else _decoded(raw)
    except (OSError, EOFError) as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: Exception) -> InputError:
    """The error of a list that cannot be opened or read."""
    why = getattr(error, "strerror", None) or str(error)
    return InputError(f"{str(path)!r} cannot be read: {why}", where="data", fix="name a list of utterances")


def csv_rows(path: Path, needed: str) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """(line number, row by column), or (line number, why there is none). Raises InputError without a needed column."""
    lines = ("" if line is None else f"{line}\n" for _, line in numbered_lines(path))
    rows = csv.DictReader(lines, skipinitialspace=True)
    try:
        columns = rows.fieldnames or ()
    except csv.Error:
        columns = ()
    if needed not in columns:
        raise InputError(f"{str(path)!r} has no column {needed}", where="data", fix="name another list, or its format")
    while True:
        try:
            row = next(rows)
            yield rows.line_num, row
        except StopIteration:
            return
        except csv.Error as error:
            yield rows.line_num, f"not CSV: {error}"


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """(line number, object), or (line number, why the line is none); empty lines are passed over."""
    for number, line in numbered_lines(path):
        if line is None or line.strip():
            yield number, _object(line)


def _object(line: str | None) -> dict[str, Any] | str:
    if line is None:
        return "the line is too long or not UTF-8"
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        return f"not JSON: {error}"
    return found if isinstance(found, dict) else "not a JSON object"


def json_members(path: Path) -> Iterator[tuple[str, Any]]:
    """(key, value) of one large JSON object, without holding it as a whole. Raises InputError where it breaks off."""
    window = _Window(path)
    try:
        window.expect("{")
        if window.peek() == "}":
            return
        while True:
            key = window.value()
            window.expect(":")
            yield str(key), window.value()
            if window.expect(",}") == "}":
                return
    finally:
        window.close()


class _Window:
    """A moving part of a JSON text, widened until the next value is whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._decoder = json.JSONDecoder()
        self._text, self._at = "", 0
        try:
            self._file = path.open(encoding="utf-8")
        except OSError as error:
            raise unreadable(path, error) from error

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def peek(self) -> str:
        """The next character that is no space, which stays; empty at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in _SPACE:
                self._at += 1
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._widen():
                return ""

    def expect(self, allowed: str) -> str:
        """The next character, which must be one of these."""
        found = self.peek()
        if not found or found not in allowed:
            raise self._broken(f"{' or '.join(allowed)} expected, not {found or 'the end'!r}")
        self._at += 1
        return found

    def value(self) -> Any:
        """The next value."""
        self.peek()
        while True:
            try:
                found, end = self._decoder.raw_decode(self._text, self._at)
            except (ValueError, RecursionError) as error:
                if len(self._text) - self._at > LONGEST_BYTES or not self._widen():
                    raise self._broken(str(error)) from error
                continue
            if end < len(self._text) or not self._widen():
                self._at = end
                return found

    def _widen(self) -> bool:
        try:
            more = self._file.read(_CHUNK)
        except (OSError, UnicodeDecodeError) as error:
            raise unreadable(self._path, error) from error
        self._text, self._at = self._text[self._at :] + more, 0
        return bool(more)

    def _broken(self, why: str) -> InputError:
        return InputError(f"{str(self._path)!r} is not a JSON object: {why}", where="data", fix="mend the file")


def _opened(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


def _decoded(raw: bytes) -> str | None:
    try:
        return raw.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        return None
