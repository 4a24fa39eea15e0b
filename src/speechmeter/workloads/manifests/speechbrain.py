"""SpeechBrain's CSV (`ID`, `duration`, `wav`, …) and JSON (`{id: {wav, length, …}}`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from speechmeter.workloads.manifests.lines import csv_rows, json_members
from speechmeter.workloads.manifests.utterance import (
    Refused,
    Utterance,
    first_text,
    seconds,
    speaker_of,
    token_count,
    whole,
)

PATHS = ("wav", "wav_path", "file_path", "audio_path", "path", "audio", "sig", "mix_wav")
"""Names that recipes give to the column of the sound, in order of preference."""
_TEXTS = ("wrd", "words", "transcript", "transcription", "text", "trn")
_DURATIONS = ("duration", "length")
_PLACEHOLDER = re.compile(r"\$\w+|\{\w+\}")


def read_csv(path: Path, root: Path | None) -> Iterator[Utterance | Refused]:
    """An utterance a row. Raises InputError when there is no column ID."""
    for line, row in csv_rows(path, "ID"):
        yield _one(str(row["ID"] if isinstance(row, dict) and row["ID"] else line), row, path, root)


def read_json(path: Path, root: Path | None) -> Iterator[Utterance | Refused]:
    """An utterance for each key."""
    for key, fields in json_members(path):
        yield _one(key, fields, path, root)


def _one(name: str, fields: Any, path: Path, root: Path | None) -> Utterance | Refused:
    try:
        return _utterance(name, fields, path, root)
    except ValueError as error:
        return Refused(id=name, reason=str(error))


def _utterance(name: str, fields: Any, path: Path, root: Path | None) -> Utterance:
    if isinstance(fields, str):
        raise ValueError(fields)
    if not isinstance(fields, Mapping):
        raise ValueError("not a mapping of fields")
    sound, start, stop = _sound(fields)
    written = _filled(sound, root)
    frames = stop - start if stop is not None else None
    duration = next((found for key in _DURATIONS if (found := seconds(fields, key)) is not None), None)
    return Utterance(
        id=name,
        path=written,
        folder=str(root or path.parent),
        part=start > 0 or stop is not None,
        start_frame=start,
        frames=frames,
        duration_s=duration if frames is None else None,
        text=first_text(fields, _TEXTS),
        speaker=speaker_of(fields),
        tokens=token_count(fields),
    )


def _sound(fields: Mapping[str, Any]) -> tuple[str, int, int | None]:
    """(path, first sample, end): of a mapping with file, start and stop, or of columns; both count samples."""
    found = next((fields[key] for key in PATHS if fields.get(key)), None)
    inner = found if isinstance(found, Mapping) else {**fields, "file": found}
    if not isinstance(inner.get("file"), str):
        raise ValueError(f"no sound: none of {', '.join(PATHS)}")
    start, stop = whole(inner, "start") or 0, whole(inner, "stop")
    if stop is not None and stop <= start:
        raise ValueError(f"stops at sample {stop}, where it does not last")
    return inner["file"], start, stop


def _filled(sound: str, root: Path | None) -> str:
    """`$data_folder/a.wav` and `{data_root}/a.wav` with the root put in."""
    if not _PLACEHOLDER.search(sound):
        return sound
    if root is None:
        raise ValueError(f"{sound!r} holds a placeholder; say what it stands for with root")
    return _PLACEHOLDER.sub(lambda _: str(root.absolute()), sound)
