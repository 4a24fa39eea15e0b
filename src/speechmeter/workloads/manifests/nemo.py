"""NeMo's JSON lines: `audio_filepath`, `duration`, `text`, `offset`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from speechmeter.workloads.manifests.lines import json_objects
from speechmeter.workloads.manifests.utterance import (
    MIX,
    Refused,
    Utterance,
    by_line,
    first_text,
    seconds,
    speaker_of,
    token_count,
    transcript,
    whole,
    without_suffix,
)

PATHS = ("audio_filepath", "audio_filename")
_TEXTS = ("text", "normalized_text")


def read(path: Path, root: Path | None) -> Iterator[Utterance | Refused]:
    """An utterance a line. `id` names it where there is one, else its path, with the offset of a part."""
    folder = str(root or path.parent)
    return by_line(json_objects(path), lambda fields: _utterance(fields, folder))


def _utterance(fields: Mapping[str, Any], folder: str) -> Utterance:
    sound = first_text(fields, PATHS)
    if not sound:
        raise ValueError("no audio_filepath")
    start_s = seconds(fields, "offset")
    made = without_suffix(sound) + (f"@{start_s:g}" if start_s else "")
    rate = whole(fields, "sample_rate")
    return Utterance(
        id=str(fields.get("id") or made),
        path=sound,
        folder=folder,
        part=start_s is not None,
        start_s=start_s or 0.0,
        duration_s=seconds(fields, "duration"),
        rate=rate if rate is not None else whole(fields, "sampling_rate"),
        channel=MIX if fields.get("channel") == MIX else whole(fields, "channel"),
        text=transcript(fields, _TEXTS),
        speaker=speaker_of(fields),
        tokens=token_count(fields),
    )
