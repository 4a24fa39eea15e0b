"""lhotse's cuts, as JSON lines or one JSON array: a MonoCut or MultiCut of a recording that is a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import floor
from pathlib import Path
from typing import Any

from speechmeter.workloads.manifests.lines import json_objects
from speechmeter.workloads.manifests.utterance import Refused, Utterance, first_text, seconds, speaker_of, whole

_SAVE = "save the sound with CutSet.save_audios first"


def read(path: Path, root: Path | None) -> Iterator[Utterance | Refused]:
    """An utterance a cut. Mixed, padded and transformed cuts are refused: no file holds their sound."""
    folder = str(root or path.parent)
    for line, fields in json_objects(path):
        if isinstance(fields, str):
            yield Refused(id=line, reason=fields)
            continue
        stated = None
        try:
            stated = _stated(fields)
            yield _with_sound(stated, fields, folder)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            yield Refused(id=str(fields.get("id", line)), reason=_why(error), stated=stated)


def _why(error: Exception) -> str:
    return f"no {error.args[0]}" if isinstance(error, KeyError) else str(error)


def _stated(cut: Mapping[str, Any]) -> Utterance:
    """What a cut says without its sound."""
    supervisions = cut.get("supervisions") or ()
    return Utterance(
        id=str(cut["id"]),
        start_s=seconds(cut, "start") or 0.0,
        duration_s=seconds(cut, "duration"),
        text=_text(supervisions),
        speaker=_speaker(supervisions),
        feature_frames=_feature_frames(cut),
    )


def _feature_frames(cut: Mapping[str, Any]) -> int | None:
    """Frames of the cut's features: as many as stated where it takes all of them, else by their shift."""
    features = cut.get("features")
    if not isinstance(features, Mapping):
        return None
    frames, shift_s = whole(features, "num_frames"), seconds(features, "frame_shift")
    own_s, all_s = seconds(cut, "duration"), seconds(features, "duration")
    if own_s is None or own_s == all_s:
        return frames
    return floor(round(own_s / shift_s, 6) + 0.5) if shift_s else None


def _with_sound(stated: Utterance, cut: Mapping[str, Any], folder: str) -> Utterance:
    if cut.get("type", "MonoCut") not in ("MonoCut", "MultiCut", "Cut") or "recording" not in cut:
        raise ValueError(f"a {cut.get('type', 'cut without a recording')} is in no file; {_SAVE}")
    recording = cut["recording"]
    if recording.get("transforms"):
        raise ValueError(f"its recording has transforms; {_SAVE}")
    source, index = _source(recording["sources"], cut.get("channel"))
    return replace(
        stated,
        path=source,
        folder=folder,
        part=stated.start_s > 0 or stated.duration_s != seconds(recording, "duration"),
        rate=whole(recording, "sampling_rate"),
        channel=index,
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


def _speaker(supervisions: Any) -> str | None:
    """The one who speaks in all of a cut; None where several do."""
    names = {speaker_of(one) for one in supervisions}
    return names.pop() if len(names) == 1 else None


def _text(supervisions: Any) -> str | None:
    ordered = sorted(supervisions, key=lambda one: one.get("start", 0))
    texts = [text for one in ordered if (text := first_text(one, ("text",))) is not None]
    return " ".join(texts) if texts else None
