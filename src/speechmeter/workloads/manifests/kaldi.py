"""Kaldi's data directory: wav.scp, with text and segments where they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from speechmeter.core.errors import InputError
from speechmeter.workloads.manifests.lines import numbered_lines
from speechmeter.workloads.manifests.utterance import Refused, Utterance, seconds

SCP = "wav.scp"
_SHOWN = 60


def read(path: Path, root: Path | None) -> Iterator[Utterance | Refused]:
    """An utterance a segment, or a recording where there are no segments; commands in wav.scp are never run."""
    scp = path / SCP if path.is_dir() else path
    folder = str(root or scp.parent)
    texts, segments = dict(_table(scp.parent / "text")), scp.parent / "segments"
    speakers = dict(_table(scp.parent / "utt2spk"))
    for found in _utterances(scp, segments, folder, texts):
        yield replace(found, speaker=speakers.get(found.id)) if isinstance(found, Utterance) else found


def _utterances(scp: Path, segments: Path, folder: str, texts: dict[str, str]) -> Iterator[Utterance | Refused]:
    _check_ids(texts, segments if segments.is_file() else scp)
    if not segments.is_file():
        durations = dict(_table(scp.parent / "utt2dur"))
        for name, sound in _table(scp):
            yield _recording(name, sound, folder, texts.get(name), durations.get(name))
        return
    recordings = dict(_table(scp))
    for name, rest in _table(segments):
        yield _segment(name, rest.split(), recordings, folder, texts.get(name))


def _check_ids(texts: dict[str, str], path: Path) -> None:
    """Raise InputError where there are texts and not one of them is about an item."""
    if texts and not any(name in texts for name, _ in _table(path)):
        raise InputError(
            f"no id of {path.name} stands in text, whose first is {next(iter(texts))[:_SHOWN]!r}",
            where="data",
            fix="mend text, or move it away",
        )


def _table(path: Path) -> Iterator[tuple[str, str]]:
    """(first word, the rest) of each line; nothing where there is no file."""
    if not path.is_file():
        return
    for number, line in numbered_lines(path):
        if line is None:
            yield f"line {number} of {path.name}", ""
        elif line.strip():
            key, _, rest = line.strip().replace("\t", " ").partition(" ")
            yield key, rest.strip()


def _recording(name: str, sound: str, folder: str, text: str | None, duration: str | None) -> Utterance | Refused:
    if not sound:
        return Refused(id=name, reason="no path in wav.scp")
    if sound.endswith("|"):
        return Refused(id=name, reason="wav.scp names a command, and commands are never run; write its sound to a file")
    try:
        stated = seconds({"utt2dur": duration}, "utt2dur")
    except ValueError as error:
        return Refused(id=name, reason=str(error))
    return Utterance(id=name, path=sound, folder=folder, text=text, duration_s=stated)


def _segment(
    name: str, fields: list[str], recordings: dict[str, str], folder: str, text: str | None
) -> Utterance | Refused:
    if len(fields) < 3:
        return Refused(id=name, reason="segments has no recording, start and end")
    if fields[0] not in recordings:
        return Refused(id=name, reason=f"wav.scp has no recording {fields[0]!r}")
    whole_file = _recording(name, recordings[fields[0]], folder, text, None)
    if isinstance(whole_file, Refused):
        return whole_file
    try:
        ends = {"start": fields[1], "end": "" if float(fields[2]) < 0 else fields[2]}
        start_s, end_s = seconds(ends, "start") or 0.0, seconds(ends, "end")
    except ValueError as error:
        return Refused(id=name, reason=str(error))
    if end_s is not None and end_s <= start_s:
        return Refused(id=name, reason=f"ends at {end_s:g} s, where it does not last")
    duration_s = end_s - start_s if end_s is not None else None
    return replace(whole_file, part=True, start_s=start_s, duration_s=duration_s)
