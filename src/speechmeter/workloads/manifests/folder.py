"""A folder of sound files, and the same with a table of texts: Hugging Face's audiofolder."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from speechmeter.workloads.manifests.lines import csv_rows, json_lines, numbered_lines
from speechmeter.workloads.manifests.utterance import (
    Refused,
    Utterance,
    by_line,
    first_text,
    seconds,
    token_count,
    transcript,
    without_suffix,
)

SUFFIXES = frozenset({".wav", ".flac", ".mp3", ".ogg", ".opus", ".aiff", ".au"})
METADATA = ("metadata.csv", "metadata.jsonl")
_TEXTS = ("transcription", "text", "sentence", "transcript")


def sound_files(folder: Path) -> list[Path]:
    """The sound files right in a folder, by name; hidden ones are passed over."""
    return sorted(path for path in folder.iterdir() if _is_sound(path.name))


def _is_sound(name: str) -> bool:
    return Path(name).suffix.lower() in SUFFIXES and not name.startswith(".")


def read(path: Path, root: Path | None) -> Iterator[Utterance | Refused]:
    """Every sound file in and below a folder, by name; a text file of the same stem is its transcript.

    Hidden files and folders are passed over. Files of one stem have their endings in their ids.
    """
    base = root or path
    for parent, folders, names in os.walk(base):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        sounds = sorted(filter(_is_sound, names))
        stems = Counter(Path(name).stem for name in sounds)
        for name in sounds:
            relative = Path(parent, name).relative_to(base)
            text = _text_of(base / relative.with_suffix(".txt"))
            identity = without_suffix(str(relative)) if stems[relative.stem] == 1 else str(relative)
            yield Utterance(id=identity, path=str(relative), folder=str(base), text=text)


def read_metadata(path: Path, root: Path | None) -> Iterator[Utterance | Refused]:
    """An utterance a row of metadata.csv or metadata.jsonl; `file_name` starts from its folder."""
    table = next((path / name for name in METADATA if (path / name).is_file()), path)
    folder = str(root or table.parent)
    rows = json_lines(table) if table.suffix == ".jsonl" else csv_rows(table, "file_name")
    return by_line(rows, lambda fields: _utterance(fields, folder))


def _utterance(fields: Mapping[str, Any], folder: str) -> Utterance:
    name = first_text(fields, ("file_name",))
    if not name:
        raise ValueError("no file_name")
    return Utterance(
        id=without_suffix(name),
        path=name,
        folder=folder,
        duration_s=seconds(fields, "duration"),
        text=transcript(fields, _TEXTS),
        tokens=token_count(fields),
    )


def _text_of(path: Path) -> str | None:
    return next((line.strip() for _, line in numbered_lines(path) if line), None) if path.is_file() else None
