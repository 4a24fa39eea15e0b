"""Lists whose items are mappings of fields: NeMo, WeNet, lhotse, SpeechBrain, and Hugging Face's audiofolder."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import floor
from pathlib import Path
from typing import Any

from speechmeter.workloads.manifests.lines import csv_rows, json_members, json_objects
from speechmeter.workloads.manifests.utterance import (
    MIX,
    Refused,
    Utterance,
    anchors_of,
    by_line,
    first_text,
    lasting,
    seconds,
    speaker_of,
    token_count,
    transcript,
    whole,
    without_suffix,
)

NEMO_PATHS = ("audio_filepath", "audio_filename")
METADATA = ("metadata.csv", "metadata.jsonl")
_AUDIOFOLDER_TEXTS = ("transcription", "text", "sentence", "transcript")
# names that SpeechBrain's recipes give to the column of the sound, in order of preference
_SPEECHBRAIN_PATHS = ("wav", "wav_path", "file_path", "audio_path", "path", "audio", "sig", "mix_wav")
_SPEECHBRAIN_TEXTS = ("wrd", "words", "transcript", "transcription", "text", "trn")
_PLACEHOLDER = re.compile(r"\$\w+|\{\w+\}")
_SAVE = "save the audio with CutSet.save_audios first"


def read_nemo(path: Path, root: Path | None) -> Iterator[Utterance | Refused]:
    """NeMo's JSON lines: `audio_filepath`, `duration`, `text`, `offset`, and where speech is (`anchors_of`).

    `id` names an item where there is one, else its path does, with the offset of a part.
    """

    return by_line(json_objects(path), lambda fields: nemo_utterance(fields, root or path.parent))


def nemo_utterance(fields: Mapping[str, Any], folder: Path) -> Utterance:
    """An item of NeMo's list. Raises ValueError with the reason where it is none."""
    sound = first_text(fields, NEMO_PATHS)
    if not sound:
        raise ValueError("no audio_filepath")
    start_s, rate = seconds(fields, "offset"), whole(fields, "sample_rate")
    return Utterance(
        id=str(fields.get("id") or without_suffix(sound) + (f"@{start_s:g}" if start_s else "")),
        path=sound,
        folder=str(folder),
        part=start_s is not None,
        start_s=start_s or 0.0,
        duration_s=seconds(fields, "duration"),
        rate=rate if rate is not None else whole(fields, "sampling_rate"),
        channel=MIX if fields.get("channel") == MIX else whole(fields, "channel"),
        text=transcript(fields, ("text", "normalized_text")),
        speaker=speaker_of(fields),
        tokens=token_count(fields),
        anchors=anchors_of(fields),
    )


def read_wenet(path: Path, root: Path | None) -> Iterator[Utterance | Refused]:
    """WeNet's raw lists: JSON lines with `key`, `wav`, `txt`; `start` and `end` in seconds for a part of a file.

    Lists of shards (tar files) are another format: `webdataset`.
    """

    def utterance(fields: Mapping[str, Any]) -> Utterance:
        if not isinstance(fields.get("wav"), str) or "key" not in fields:
            raise ValueError("no key and wav")
        start_s, end_s = seconds(fields, "start"), seconds(fields, "end")
        return Utterance(
            id=str(fields["key"]),
            path=fields["wav"],
            folder=str(root or path.parent),
            part=start_s is not None or end_s is not None,
            start_s=start_s or 0.0,
            duration_s=lasting(start_s or 0.0, end_s),
            text=transcript(fields, ("txt",)),
            speaker=speaker_of(fields),
            tokens=token_count(fields),
            anchors=anchors_of(fields),
        )

    return by_line(json_objects(path), utterance)


def read_audiofolder(path: Path, root: Path | None) -> Iterator[Utterance | Refused]:
    """Hugging Face's metadata.csv or metadata.jsonl; `file_name` is relative to its folder."""
    table = next((path / name for name in METADATA if (path / name).is_file()), path)

    def utterance(fields: Mapping[str, Any]) -> Utterance:
        name = first_text(fields, ("file_name",))
        if not name:
            raise ValueError("no file_name")
        return Utterance(
            id=without_suffix(name),
            path=name,
            folder=str(root or table.parent),
            duration_s=seconds(fields, "duration"),
            text=transcript(fields, _AUDIOFOLDER_TEXTS),
            speaker=speaker_of(fields),
            tokens=token_count(fields),
            anchors=anchors_of(fields),
        )

    return by_line(json_objects(table) if table.suffix == ".jsonl" else csv_rows(table, "file_name"), utterance)


def read_speechbrain_csv(path: Path, root: Path | None) -> Iterator[Utterance | Refused]:
    """SpeechBrain's CSV: `ID`, `duration`, `wav`, …. Raises InputError when there is no column ID."""
    for line, row in csv_rows(path, "ID"):
        yield _of_speechbrain(str(row["ID"] if isinstance(row, dict) and row["ID"] else line), row, path, root)


def read_speechbrain_json(path: Path, root: Path | None) -> Iterator[Utterance | Refused]:
    """SpeechBrain's JSON: `{id: {wav, length, …}}`."""
    for key, fields in json_members(path):
        yield _of_speechbrain(key, fields, path, root)


def _of_speechbrain(name: str, fields: Any, path: Path, root: Path | None) -> Utterance | Refused:
    try:
        if not isinstance(fields, Mapping):
            raise ValueError(fields if isinstance(fields, str) else "not a mapping of fields")
        sound, start, stop = _speechbrain_sound(fields)
        if _PLACEHOLDER.search(sound):  # $data_folder/a.wav, {data_root}/a.wav
            if root is None:
                raise ValueError(f"{sound!r} contains a placeholder; set its value with `root`")
            sound = _PLACEHOLDER.sub(lambda _: str(root.absolute()), sound)
        duration = seconds(fields, "duration")
        return Utterance(
            id=name,
            path=sound,
            folder=str(root or path.parent),
            part=start > 0 or stop is not None,
            start_frame=start,
            frames=stop - start if stop is not None else None,
            duration_s=None if stop is not None else duration if duration is not None else seconds(fields, "length"),
            text=first_text(fields, _SPEECHBRAIN_TEXTS),
            speaker=speaker_of(fields),
            tokens=token_count(fields),
        )
    except ValueError as error:
        return Refused(id=name, reason=str(error))


def _speechbrain_sound(fields: Mapping[str, Any]) -> tuple[str, int, int | None]:
    """(path, first sample, end): of a mapping with file, start and stop, or of columns; both count samples."""
    found = next((fields[key] for key in _SPEECHBRAIN_PATHS if fields.get(key)), None)
    inner = found if isinstance(found, Mapping) else {**fields, "file": found}
    if not isinstance(inner.get("file"), str):
        raise ValueError(f"no audio file: none of the keys {', '.join(_SPEECHBRAIN_PATHS)} is set")
    start, stop = whole(inner, "start") or 0, whole(inner, "stop")
    if stop is not None and stop <= start:
        raise ValueError(f"the end (sample {stop}) must be after the start (sample {start})")
    return inner["file"], start, stop


def read_lhotse(path: Path, root: Path | None) -> Iterator[Utterance | Refused]:
    """lhotse's cuts, as JSON lines or one JSON array: a MonoCut or MultiCut of a recording that is a file.

    Mixed, padded and transformed cuts are refused, because no file holds their sound.
    """
    for line, fields in json_objects(path):
        if isinstance(fields, str):
            yield Refused(id=line, reason=fields)
            continue
        stated = None
        try:
            stated = cut_of(fields)
            yield _with_sound(stated, fields, str(root or path.parent))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            reason = f"no {error.args[0]}" if isinstance(error, KeyError) else str(error)
            yield Refused(id=str(fields.get("id", line)), reason=reason, stated=stated)


def cut_of(cut: Mapping[str, Any]) -> Utterance:
    """What a cut states, without its sound."""
    supervisions = cut.get("supervisions") or ()
    ordered = sorted(supervisions, key=lambda one: one.get("start", 0))
    texts = [text for one in ordered if (text := first_text(one, ("text",))) is not None]
    speakers = {speaker_of(one) for one in supervisions}
    features = cut.get("features")
    frames = None
    if isinstance(features, Mapping):
        # as many frames as stated where the cut takes all of the features, else by their shift
        frames, shift_s = whole(features, "num_frames"), seconds(features, "frame_shift")
        own_s = seconds(cut, "duration")
        if own_s is not None and own_s != seconds(features, "duration"):
            frames = floor(round(own_s / shift_s, 6) + 0.5) if shift_s else None
    return Utterance(
        id=str(cut["id"]),
        start_s=seconds(cut, "start") or 0.0,
        duration_s=seconds(cut, "duration"),
        text=" ".join(texts) if texts else None,
        speaker=speakers.pop() if len(speakers) == 1 else None,
        feature_frames=frames,
    )


def _with_sound(stated: Utterance, cut: Mapping[str, Any], folder: str) -> Utterance:
    if cut.get("type", "MonoCut") not in ("MonoCut", "MultiCut", "Cut") or "recording" not in cut:
        raise ValueError(
            f"the audio of a {cut.get('type', 'cut without a recording')} is not stored in a file; {_SAVE}"
        )
    recording = cut["recording"]
    if recording.get("transforms"):
        raise ValueError(f"its recording has transforms; {_SAVE}")
    channel = cut.get("channel")
    sources = [one for one in recording["sources"] if not isinstance(channel, int) or channel in one["channels"]]
    if not sources:
        raise ValueError(f"no audio source has channel {channel}")
    source = sources[0]
    if source.get("type") != "file":
        raise ValueError(f"its audio source is of type {source.get('type')}, not a file; {_SAVE}")
    several = isinstance(channel, int) and len(source["channels"]) > 1
    return replace(
        stated,
        path=str(source["source"]),
        folder=folder,
        part=stated.start_s > 0 or stated.duration_s != seconds(recording, "duration"),
        rate=whole(recording, "sampling_rate"),
        channel=source["channels"].index(channel) if several else None,
    )
