"""A folder of sound files, and the same with a table of texts: Hugging Face's audiofolder."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from speechmeter.workloads.manifests.lines import csv_rows, json_objects, numbered_lines
from speechmeter.workloads.manifests.utterance import (
    Refused,
    Utterance,
    by_line,
    first_text,
    seconds,
    speaker_of,
    token_count,
    transcript,
    without_suffix,
)

SUFFIXES = frozenset(
    {".wav", ".flac", ".mp3", ".ogg", ".oga", ".opus", ".aiff", ".aif", ".au", ".snd", ".caf", ".w64", ".sph"}
)
"""Endings of sound files that libsndfile decodes."""
FOREIGN = frozenset(
    {".m4a", ".aac", ".mp4", ".m4b", ".mov", ".wma", ".amr", ".3gp", ".webm", ".mka", ".mkv", ".ac3", ".ape", ".wv"}
)
"""Endings of files with sound that it does not: they are left out, and counted."""
METADATA = ("metadata.csv", "metadata.jsonl")
_FEW = 6
"""So many kinds of files are named where a folder has no sound."""
_TEXTS = ("transcription", "text", "sentence", "transcript")


def _ending(name: str) -> str:
    return "" if name.startswith(".") else Path(name).suffix.lower()


def read(path: Path, root: Path | None) -> Iterator[Utterance | Refused]:
    """Every sound file in and below a folder, by name; a text file of the same stem is its transcript.

    Hidden files and folders are passed over. Files of one stem have their endings in their ids. Sound of a kind that
    cannot be decoded is refused.
    """
    base = root or path
    for parent, folders, names in os.walk(base):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(name for name in names if _ending(name) in FOREIGN):
            yield Refused(id=name, reason="cannot be decoded", kind=_ending(name))
        sounds = sorted(name for name in names if _ending(name) in SUFFIXES)
        stems = Counter(Path(name).stem for name in sounds)
        for name in sounds:
            relative = Path(parent, name).relative_to(base)
            text = _text_of(base / relative.with_suffix(".txt"))
            identity = without_suffix(str(relative)) if stems[relative.stem] == 1 else str(relative)
            yield Utterance(id=identity, path=str(relative), folder=str(base), text=text)


def contents(path: Path) -> str:
    """What a folder holds, in a few words: `3 .m4a, 1 .txt, 2 folders`; `nothing`."""
    kinds: Counter[str] = Counter()
    for entry in path.iterdir():
        if not entry.name.startswith("."):
            kinds["folder" if entry.is_dir() else _ending(entry.name) or "file without an ending"] += 1
    named = [f"{count} {kind}{'s' if count > 1 and kind == 'folder' else ''}" for kind, count in kinds.most_common()]
    return ", ".join([*named[:_FEW], *(["…"] if len(named) > _FEW else [])]) or "nothing"


def read_metadata(path: Path, root: Path | None) -> Iterator[Utterance | Refused]:
    """An utterance a row of metadata.csv or metadata.jsonl; `file_name` starts from its folder."""
    table = next((path / name for name in METADATA if (path / name).is_file()), path)
    folder = str(root or table.parent)
    rows = json_objects(table) if table.suffix == ".jsonl" else csv_rows(table, "file_name")
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
        speaker=speaker_of(fields),
        tokens=token_count(fields),
    )


def _text_of(path: Path) -> str | None:
    return next((line.strip() for _, line in numbered_lines(path) if line), None) if path.is_file() else None
