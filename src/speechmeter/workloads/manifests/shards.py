"""Datasets in tar files: WebDataset and WeNet's shards, NeMo's tarred lists, lhotse's Shar. Sound is read in place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

from speechmeter.core.errors import InputError
from speechmeter.core.files import MIB
from speechmeter.workloads.manifests.columns import Columns, mapped
from speechmeter.workloads.manifests.field_lists import NEMO_PATHS, cut_of, nemo_utterance
from speechmeter.workloads.manifests.inside import Slice
from speechmeter.workloads.manifests.lines import json_objects, numbered_lines
from speechmeter.workloads.manifests.plain_lists import FOREIGN, SUFFIXES
from speechmeter.workloads.manifests.tar import Member, members
from speechmeter.workloads.manifests.utterance import (
    Refused,
    Utterance,
    anchors_of,
    by_line,
    first_text,
    seconds,
    speaker_of,
    transcript,
)

_LARGEST_TEXT = MIB
_TEXTS = ("text", "transcription", "sentence", "transcript", "txt", "normalized_text")
_NUMBER = re.compile(r"(\d+)\.tar$")
_CUTS = re.compile(r"cuts\.(.+)\.jsonl(?:\.gz)?")


def tars_of(path: Path) -> list[Path]:
    """The tar files that a path means: itself, those of a folder, or those that a list names, a line each."""
    if path.is_dir():
        return sorted(path.glob("*.tar"))
    if path.suffix == ".tar":
        return [path]
    lines = [line.strip() for _, line in numbered_lines(path) if line and line.strip()]
    return [line_path if (line_path := Path(line)).is_absolute() else path.parent / line for line in lines]


def read_webdataset(path: Path, root: Path | None, columns: Columns) -> Iterator[Utterance | Refused]:
    """Samples of WebDataset and of WeNet's shards: neighbouring members whose names differ in their endings only.

    A sample has one sound; its text is a member `.txt`, or a field of a member `.json`.
    """
    for tar in tars_of(path):
        for name, parts in groupby(members(tar), key=lambda member: _split(member.name)[0]):
            yield _sample(tar, name, {_split(one.name)[1]: one for one in parts}, columns)


def _split(name: str) -> tuple[str, str]:
    """A member's name without its ending, and the ending: `a/b.c.wav` as `a/b.c` and `.wav`."""
    folder, slash, own = name.rpartition("/")
    stem, dot, ending = own.rpartition(".")
    return (f"{folder}{slash}{stem}", f".{ending.lower()}") if dot else (name, "")


def _sample(tar: Path, name: str, parts: Mapping[str, Member], columns: Columns) -> Utterance | Refused:
    name = name.removeprefix("./")
    sounds = [ending for ending in parts if ending in SUFFIXES | FOREIGN]
    try:
        fields = mapped(_json(tar, parts[".json"]), columns) if ".json" in parts else {}
        text = transcript(fields, _TEXTS)
        if text is None and ".txt" in parts:
            text = _text(tar, parts[".txt"]).strip()
        if len(sounds) != 1:
            raise ValueError("has no sound" if not sounds else f"has several sounds: {', '.join(sounds)}")
        sound = parts[sounds[0]]
        named = fields.get("id")
        return Utterance(
            id=str(named) if isinstance(named, str | int) and "id" in dict(columns) else name,
            path=str(tar.absolute()),
            inside=Slice(offset=sound.offset, size=sound.size),
            text=text,
            speaker=speaker_of(fields),
            anchors=anchors_of(fields),
        )
    except ValueError as error:
        return Refused(id=name, reason=str(error))


def _text(tar: Path, member: Member) -> str:
    if member.size > _LARGEST_TEXT:
        raise ValueError(f"{member.name} has {member.size:,} bytes, more than {_LARGEST_TEXT:,}")
    return Slice(offset=member.offset, size=member.size).read(tar).decode("utf-8-sig")


def _json(tar: Path, member: Member) -> dict[str, Any]:
    try:
        found = json.loads(_text(tar, member))
    except RecursionError:
        found = None
    if not isinstance(found, dict):
        raise ValueError(f"{member.name} is not a JSON object")
    return found


def read_nemo_tarred(path: Path, root: Path | None) -> Iterator[Utterance | Refused]:
    """NeMo's JSON lines with `shard_id`: the sound is the member of that name in `audio_ID.tar`, beside the list."""
    folder = root or path.parent
    shards = {int(found[1]): tar for tar in sorted(folder.glob("*.tar")) if (found := _NUMBER.search(tar.name))}
    if not shards:
        raise InputError(
            f"{str(folder)!r} has no tar file with a number at its end, such as audio_0.tar",
            key="data", fix="set `root` to the folder of the tar files",
        )  # fmt: skip

    def utterance(fields: Mapping[str, Any]) -> Utterance:
        found = nemo_utterance(fields, folder)
        tar = shards.get(fields["shard_id"]) if isinstance(fields.get("shard_id"), int) else None
        if tar is None:
            raise ValueError(f"there is no tar file of shard_id {fields.get('shard_id')!r}")
        name = first_text(fields, NEMO_PATHS) or ""
        member = _index(str(tar), tar.stat().st_mtime_ns).get(name)
        if member is None:
            raise ValueError(f"{tar.name} has no member {name!r}")
        return replace(found, path=str(tar.absolute()), inside=Slice(offset=member.offset, size=member.size))

    return by_line(json_objects(path), utterance)


@lru_cache(maxsize=4)
def _index(tar: str, _changed_ns: int) -> dict[str, Member]:
    return {member.name.removeprefix("./"): member for member in members(Path(tar))}


def read_shar(path: Path, root: Path | None) -> Iterator[Utterance | Refused]:
    """lhotse's Shar: the cuts of `cuts.N.jsonl.gz` with their sound in `recording.N.tar`."""
    lists = {found[1]: file for file in sorted(path.iterdir()) if (found := _CUTS.fullmatch(file.name))}
    for number, file in lists.items():
        tar = (root or path) / f"recording.{number}.tar"
        index = _index(str(tar), tar.stat().st_mtime_ns) if tar.is_file() else {}
        by_name = {_split(name)[0]: member for name, member in index.items() if not name.endswith((".json", ".nodata"))}
        for line, fields in json_objects(file):
            if isinstance(fields, str):
                yield Refused(id=line, reason=fields)
                continue
            try:
                yield _with_member(cut_of(fields), fields, tar, by_name)
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                reason = f"no {error.args[0]}" if isinstance(error, KeyError) else str(error)
                yield Refused(id=str(fields.get("id", line)), reason=reason)


def _with_member(stated: Utterance, cut: Mapping[str, Any], tar: Path, index: Mapping[str, Member]) -> Utterance:
    member = index.get(stated.id)
    if member is None:
        raise ValueError(f"{tar.name} has no sound of this name")
    recording = cut["recording"] if isinstance(cut.get("recording"), Mapping) else {}
    return replace(
        stated,
        path=str(tar.absolute()),
        inside=Slice(offset=member.offset, size=member.size),
        part=stated.start_s > 0 or stated.duration_s != seconds(recording, "duration"),
    )
