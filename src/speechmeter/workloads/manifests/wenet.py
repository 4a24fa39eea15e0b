"""WeNet's raw lists: a JSON line with `key`, `wav`, `txt`; `start` and `end` in seconds for a part of a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from speechmeter.workloads.manifests.lines import json_objects
from speechmeter.workloads.manifests.utterance import (
    Refused,
    Utterance,
    by_line,
    seconds,
    speaker_of,
    token_count,
    transcript,
)


def read(path: Path, root: Path | None) -> Iterator[Utterance | Refused]:
    """An utterance a line. Lists of shards (tar files) are another format, and are not read."""
    folder = str(root or path.parent)
    return by_line(json_objects(path), lambda fields: _utterance(fields, folder))


def _utterance(fields: Mapping[str, Any], folder: str) -> Utterance:
    if not isinstance(fields.get("wav"), str) or "key" not in fields:
        raise ValueError("no key and wav")
    start_s, end_s = seconds(fields, "start"), seconds(fields, "end")
    if end_s is not None and end_s <= (start_s or 0.0):
        raise ValueError(f"ends at {end_s:g} s, where it does not last")
    return Utterance(
        id=str(fields["key"]),
        path=fields["wav"],
        folder=folder,
        part=start_s is not None or end_s is not None,
        start_s=start_s or 0.0,
        duration_s=end_s - (start_s or 0.0) if end_s is not None else None,
        text=transcript(fields, ("txt",)),
        speaker=speaker_of(fields),
        tokens=token_count(fields),
    )
