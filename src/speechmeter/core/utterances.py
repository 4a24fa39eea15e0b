"""Utterances as JSON lines with the fields of the Open ASR Leaderboard: one line an utterance, written and read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO

from speechmeter.core.errors import InputError
from speechmeter.core.files import MIB, opened, write_whole

UTTERANCES_FILE = "utterances.jsonl"
FIELDS = ("audio_filepath", "duration", "time", "text", "pred_text")
"""The keys of a line, in order."""
LARGEST_FILE = 512 * MIB
"""Unpacked; a larger one is refused. A test set of a million utterances has 300 MB."""
MOST_UTTERANCES = 2_000_000
_PARENT, _CHUNK = "parent_id", "chunk_index"
"""Keys of a line that is a part of a longer recording."""
_LONGEST_LINE = MIB
_LONGEST_S = 1e9
"""Seconds of an utterance, or of computing it: 30 years are no measurement."""
_LONGEST_VALUE = 60
_NAMED, _LONGEST_REASON = 100, 200
"""So many lines that cannot be used are named, so shortly; the others are counted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Utterance:
    """What was heard and what was made of it: seconds of audio, seconds it took, reference, output.

    Files of other tools may hold null for the seconds: None here.
    """

    name: str
    duration_s: float | None
    time_s: float | None
    reference: str
    output: str

    def to_json(self) -> dict[str, Any]:
        """One line, with the leaderboard's names."""
        values = (self.name, self.duration_s, self.time_s, self.reference, self.output)
        return dict(zip(FIELDS, values, strict=True))


@dataclass(frozen=True, kw_only=True)
class UtteranceFile:
    """The utterances of a file, and what is wrong with the first lines that hold none (`file:line: reason`)."""

    utterances: tuple[Utterance, ...]
    bad_lines: tuple[str, ...]


def write_utterances(path: Path, utterances: Iterable[Utterance]) -> None:
    """Write the file, and its folder where that is missing."""
    lines = [json.dumps(one.to_json(), ensure_ascii=False) for one in utterances]
    write_whole(path, "".join(f"{line}\n" for line in lines).encode(errors="replace"))


def read_utterances(path: Path) -> UtteranceFile:
    """Every line that can be used, of a plain or gzipped file; the second of one id cannot.

    Raises InputError for a file that cannot be read, holds no such line, or is too large.
    """
    found: dict[str, Utterance] = {}
    bad: list[str] = []
    others = 0
    try:
        with opened(path, LARGEST_FILE) as file:
            for number, line in _numbered(file):
                try:
                    one = _utterance(line)
                    if one.name in found:
                        raise ValueError(f"audio_filepath {one.name!r} appears for the second time")
                    found[one.name] = one
                except ValueError as error:
                    if len(bad) < _NAMED:
                        reason = str(error)
                        short = reason if len(reason) <= _LONGEST_REASON else f"{reason[:_LONGEST_REASON]}…"
                        bad.append(f"{path}:{number}: {short}")
                    else:
                        others += 1
                if len(found) > MOST_UTTERANCES:
                    raise InputError(
                        f"the list has more than {MOST_UTTERANCES:,} utterances", where=str(path), fix="split the file"
                    )
    except OSError as error:
        raise InputError(f"this cannot be read: {error}", where=str(path), fix="use a JSON-lines file") from error
    if not found:
        reason = bad[0].removeprefix(f"{path}:") if bad else "no line"
        raise InputError(f"no line can be used ({reason})", where=str(path), fix=f"each line needs {', '.join(FIELDS)}")
    more = [f"{path}: {others} more lines that cannot be used"] if others else []
    return UtteranceFile(utterances=tuple(found.values()), bad_lines=(*bad, *more))


def read_manifest(path: Path) -> tuple[Utterance, ...]:
    """Every line of a result manifest of the Open ASR Leaderboard, as its scorer takes them.

    Names may repeat, a time of 0 is none, and chunks of one session (`parent_id`, `chunk_index`) are joined: their
    texts by a blank, their seconds as sums. Raises InputError, with file and line, for a line that its scorer could not
    use either.
    """
    found: list[Utterance] = []
    sessions: dict[str, list[tuple[int, Utterance]]] = {}
    chunked: bool | None = None
    try:
        with opened(path, LARGEST_FILE) as file:
            for number, line in _numbered(file):
                try:
                    data = _object(line)
                    one = _of_mapping({**data, "time": _or_none(data["time"]), "duration": _or_none(data["duration"])})
                    chunked = _PARENT in data if chunked is None else chunked  # the first line decides, as there
                    if not chunked:
                        found.append(one)
                    elif not isinstance(data.get(_PARENT), str | int):
                        raise ValueError(f"{_PARENT} is missing, or no name, while the first line has one")
                    else:
                        sessions.setdefault(str(data[_PARENT]), []).append((_chunk_index(data), one))
                except ValueError as error:
                    fix = f"each line needs {', '.join(FIELDS)}"
                    raise InputError(str(error), where=f"{path}:{number}", fix=fix) from error
    except OSError as error:
        raise InputError(f"this cannot be read: {error}", where=str(path), fix="use a JSON-lines file") from error
    if chunked is None:
        raise InputError("the file has no line", where=str(path), fix=f"each line needs {', '.join(FIELDS)}")
    return tuple(_joined(name, sessions[name]) for name in sorted(sessions)) if chunked else tuple(found)


def _or_none(value: Any) -> Any:
    """Seconds that are 0 are none, and so is null."""
    return None if value in (0, None) and value is not False else value


def _joined(name: str, chunks: Sequence[tuple[int, Utterance]]) -> Utterance:
    """The chunks of a session as one utterance, in their order; its reference is in each of them."""
    ordered = [one for _, one in sorted(chunks, key=lambda chunk: chunk[0])]
    durations, times = ([getattr(one, key) for one in ordered] for key in ("duration_s", "time_s"))
    return Utterance(
        name=name,
        duration_s=None if None in durations else sum(durations),
        time_s=None if None in times else sum(times),
        reference=ordered[0].reference,
        output=" ".join(text for one in ordered if (text := one.output.strip())),
    )


def _numbered(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """(number from 1 on, line) of lines that hold something; of one that is too long its start, which is no JSON."""
    for number in count(1):
        line = end = file.readline(_LONGEST_LINE)
        while len(end) == _LONGEST_LINE and not end.endswith(b"\n"):
            end = file.readline(_LONGEST_LINE)
        if not line:
            return
        if line.strip():
            yield number, line


def _utterance(line: bytes) -> Utterance:
    return _of_mapping(_object(line))


def _object(line: bytes) -> Mapping[str, Any]:
    try:
        data = json.loads(line.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at column {error.colno}") from error
    except UnicodeDecodeError as error:
        raise ValueError("not UTF-8") from error
    except RecursionError:
        data = None
    if not isinstance(data, Mapping):
        raise ValueError("not a JSON object")
    missing = [name for name in FIELDS if name not in data]
    if missing:
        raise ValueError(f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")
    return data


def _of_mapping(data: Mapping[str, Any]) -> Utterance:
    return Utterance(
        name=_text(data, "audio_filepath"),
        duration_s=_seconds(data, "duration"),
        time_s=_seconds(data, "time"),
        reference=_text(data, "text"),
        output="" if data["pred_text"] is None else _text(data, "pred_text"),
    )


def _text(data: Mapping[str, Any], name: str) -> str:
    if not isinstance(data[name], str):
        raise ValueError(f"{name} takes text, not {_short(data[name])}")
    return str(data[name])


def _seconds(data: Mapping[str, Any], name: str) -> float | None:
    value = data[name]
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _LONGEST_S:
        raise ValueError(f"{name} takes seconds above 0, not {_short(value)}")
    return float(value)


def _chunk_index(data: Mapping[str, Any]) -> int:
    value = data.get(_CHUNK)
    if type(value) is not int or not 0 <= value <= MOST_UTTERANCES:
        raise ValueError(f"{_CHUNK} takes a whole number from 0 on, not {_short(value)}")
    return value


def _short(value: Any) -> str:
    """A value for a message: a number may have thousands of digits, and a list any size."""
    return repr(value)[:_LONGEST_VALUE]
