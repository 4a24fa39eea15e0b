"""Text files read a piece at a time, however long: plain or gzip; lines, JSON lines, or one large JSON text."""

from __future__ import annotations

import codecs
import csv
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from speechmeter.core.errors import InputError
from speechmeter.core.files import opened

LONGEST_BYTES = 1 << 20
"""A longer line, or a larger item of one JSON object, is refused."""
_MOST_UNPACKED = 16 << 30
"""Bytes of a gzipped list, which are read and not held."""
_CHUNK = 1 << 16
_SPACE = " \t\r\n"
UNREADABLE_LINE = "the line is too long or not UTF-8"


def numbered_lines(path: Path) -> Iterator[tuple[int, str | None]]:
    """(number from 1 on, line without its end); None for a line that is too long or is not UTF-8.

    Raises InputError when the file cannot be read at all.
    """
    try:
        with opened(path, _most_bytes(path)) as file:
            number, cut = 0, False
            while raw := file.readline(LONGEST_BYTES):
                number, continues = (number if cut else number + 1), cut
                cut = not raw.endswith(b"\n") and len(raw) == LONGEST_BYTES
                if continues:
                    continue
                try:
                    yield number, None if cut else raw.decode("utf-8-sig").rstrip("\r\n")
                except UnicodeDecodeError:
                    yield number, None
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: Exception) -> InputError:
    """The error of a list that cannot be opened or read."""
    why = getattr(error, "strerror", None) or str(error)
    return InputError(f"{str(path)!r} cannot be read: {why}", key="data", fix="use a list of utterances")


Fields = dict[str, Any] | str
"""The fields of an item, or why there are none."""
_NO_OBJECT = "not a JSON object"


def csv_rows(path: Path, needed: str) -> Iterator[tuple[str, Fields]]:
    """(`line 3`, row by column), or (`line 3`, why there is none). Raises InputError without a needed column."""
    lines = ("" if line is None else f"{line}\n" for _, line in numbered_lines(path))
    rows = csv.DictReader(lines, skipinitialspace=True)
    try:
        columns = rows.fieldnames or ()
    except csv.Error:
        columns = ()
    if needed not in columns:
        raise InputError(f"{str(path)!r} has no column {needed}", key="data", fix="use another list, or set `format`")
    while True:
        try:
            row = next(rows)
            yield f"line {rows.line_num}", row
        except StopIteration:
            return
        except csv.Error as error:
            yield f"line {rows.line_num}", f"not CSV: {error}"


def json_objects(path: Path) -> Iterator[tuple[str, Fields]]:
    """(`line 3`, object) of JSON lines, or (`item 3`, object) of one JSON array; why there is none in its place.

    Empty lines are passed over. Raises InputError where an array breaks off.
    """
    if json_begins(path) == "[":
        with _Window(path) as window:
            for number, found in enumerate(window.values("[", "]"), start=1):
                yield f"item {number}", found if isinstance(found, dict) else _NO_OBJECT
        return
    for number, line in numbered_lines(path):
        if line is None or line.strip():
            yield f"line {number}", _object(line)


def _object(line: str | None) -> Fields:
    if line is None:
        return UNREADABLE_LINE
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        return f"not JSON: {error}"
    return found if isinstance(found, dict) else _NO_OBJECT


def json_begins(path: Path) -> str:
    """The first character that is no space; empty where there is none, or the text is not UTF-8."""
    _, line = next(((number, line) for number, line in numbered_lines(path) if line is None or line.strip()), (0, ""))
    return (line or "").strip()[:1]


def json_members(path: Path) -> Iterator[tuple[str, Any]]:
    """(key, value) of one large JSON object, without holding it as a whole. Raises InputError where it breaks off."""
    with _Window(path) as window:
        for key in window.values("{", "}"):
            window.expect(":")
            yield str(key), window.value()


class _Window:
    """A window that moves over a JSON text, and grows until the next value is whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._decoder = json.JSONDecoder()
        self._utf8 = codecs.getincrementaldecoder("utf-8-sig")()
        self._text, self._at = "", 0
        self._files = ExitStack()

    def __enter__(self) -> _Window:
        try:
            self._file = self._files.enter_context(opened(self._path, _most_bytes(self._path)))
        except OSError as error:
            raise unreadable(self._path, error) from error
        return self

    def __exit__(self, *error: Any) -> None:
        self._files.close()

    def values(self, begin: str, end: str) -> Iterator[Any]:
        """The values between two brackets, each followed by a comma or the end once the caller goes on."""
        self.expect(begin)
        if self.peek() == end:
            return
        yield self.value()
        while self.expect(f",{end}") != end:
            yield self.value()

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
            raw = self._file.read(_CHUNK)
            more = self._utf8.decode(raw, final=not raw)
        except (OSError, UnicodeDecodeError) as error:
            raise unreadable(self._path, error) from error
        self._text, self._at = self._text[self._at :] + more, 0
        return bool(raw)

    def _broken(self, why: str) -> InputError:
        return InputError(f"{str(self._path)!r} cannot be read as JSON: {why}", key="data", fix="correct the file")


def _most_bytes(path: Path) -> int | None:
    return _MOST_UNPACKED if path.suffix == ".gz" else None
