"""lhotse's cuts as JSON lines: a MonoCut or MultiCut of a recording that is a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from speechmeter.workloads.manifests.lines import json_lines
from speechmeter.workloads.manifests.utterance import Refused, Utterance, first_text, seconds, whole

_SAVE = "save the sound with CutSet.save_audios first"


def read(path: Path, root: Path | None) -> Iterator[Utterance | Refused]:
    """An utterance a cut; mixed, padded and transformed cuts are refused, as their sound stands in no file."""
    folder = str(root or path.parent)
    for number, fields in json_lines(path):
        if isinstance(fields, str):
            yield Refused(id=f"line {number}", reason=fields)
            continue
        try:
            yield _utterance(fields, folder)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            yield Refused(id=str(fields.get("id", f"line {number}")), reason=_why(error))


def _why(error: Exception) -> str:
    return f"no {error.args[0]}" if isinstance(error, KeyError) else str(error)


def _utterance(cut: Mapping[str, Any], folder: str) -> Utterance:
    if cut.get("type", "MonoCut") not in ("MonoCut", "MultiCut") or "recording" not in cut:
        raise ValueError(f"a {cut.get('type', 'cut without a recording')} is in no file; {_SAVE}")
    recording = cut["recording"]
    if recording.get("transforms"):
        raise ValueError(f"its recording has transforms; {_SAVE}")
    channel = cut.get("channel")
    source, index = _source(recording["sources"], channel)
    start_s, duration_s = seconds(cut, "start") or 0.0, seconds(cut, "duration")
    return Utterance(
        id=str(cut["id"]),
        path=source,
        folder=folder,
        part=start_s > 0 or duration_s != seconds(recording, "duration"),
        start_s=start_s,
        duration_s=duration_s,
        rate=whole(recording, "sampling_rate"),
        channel=index,
        text=_text(cut.get("supervisions") or ()),
    )


def _source(sources: list[dict[str, Any]], channel: Any) -> tuple[str, int | None]:
    """The file that holds a channel, and which of the file's own channels it is; None for a file with one."""
    fitting = [source for source in sources if not isinstance(channel, int) or channel in source["channels"]]
    if not fitting:
        raise ValueError(f"no source has channel {channel}")
    source = fitting[0]
    if source.get("type") != "file":
        raise ValueError(f"its sound is a {source.get('type')}, not a file; {_SAVE}")
    several = isinstance(channel, int) and len(source["channels"]) > 1
    return str(source["source"]), source["channels"].index(channel) if several else None


def _text(supervisions: Any) -> str | None:
    ordered = sorted(supervisions, key=lambda one: one.get("start", 0))
    texts = [text for one in ordered if (text := first_text(one, ("text",))) is not None]
    return " ".join(texts) if texts else None
