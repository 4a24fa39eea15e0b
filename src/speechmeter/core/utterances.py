"""Utterances as JSON lines with the fields of the Open ASR Leaderboard: one line an utterance, written and read."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speechmeter.core.errors import InputError

UTTERANCES_FILE = "utterances.jsonl"
FIELDS = ("audio_filepath", "duration", "time", "text", "pred_text")
"""The keys of a line, in order."""


@dataclass(frozen=True, kw_only=True)
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
    """The utterances of a file, and what is wrong with each line that holds none (`file:line: reason`)."""

    utterances: tuple[Utterance, ...]
    bad_lines: tuple[str, ...]


def write_utterances(path: Path, utterances: Iterable[Utterance]) -> None:
    """Write the file and the folder it stands in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(one.to_json(), ensure_ascii=False) for one in utterances]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def read_utterances(path: Path) -> UtteranceFile:
    """Every line that can be used, of a plain or gzipped file; the second of one id cannot.

    Raises InputError for a file that cannot be read or holds no such line.
    """
    try:
        packed = path.read_bytes()
        text = (gzip.decompress(packed) if path.suffix == ".gz" else packed).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(f"this cannot be read: {error}", where=str(path), fix="name a JSON-lines file") from error
    found: dict[str, Utterance] = {}
    bad: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            one = _utterance(line)
            if one.name in found:
                raise ValueError(f"audio_filepath {one.name!r} stands for the second time")
            found[one.name] = one
        except ValueError as error:
            bad.append(f"{path}:{number}: {error}")
    if not found:
        reason = bad[0].removeprefix(f"{path}:") if bad else "no line"
        raise InputError(
            f"no utterance can be used ({reason})", where=str(path), fix=f"each line needs {', '.join(FIELDS)}"
        )
    return UtteranceFile(utterances=tuple(found.values()), bad_lines=tuple(bad))


def _utterance(line: str) -> Utterance:
    try:
        data = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at column {error.colno}") from error
    if not isinstance(data, Mapping):
        raise ValueError("not a JSON object")
    missing = [name for name in FIELDS if name not in data]
    if missing:
        raise ValueError(f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")
    return Utterance(
        name=_text(data, "audio_filepath"),
        duration_s=_seconds(data, "duration"),
        time_s=_seconds(data, "time"),
        reference=_text(data, "text"),
        output="" if data["pred_text"] is None else _text(data, "pred_text"),
    )


def _text(data: Mapping[str, Any], name: str) -> str:
    if not isinstance(data[name], str):
        raise ValueError(f"{name} takes text, not {data[name]!r}")
    return str(data[name])


def _seconds(data: Mapping[str, Any], name: str) -> float | None:
    value = data[name]
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        raise ValueError(f"{name} takes seconds above 0, not {value!r}")
    return float(value)
