"""Lists of plain text lines, and folders: fairseq's TSV, Kaldi's data directory, a folder of sound files."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from speechmeter.core.errors import InputError
from speechmeter.workloads import compressed
from speechmeter.workloads.manifests.ark import ArkMatrix, split_place
from speechmeter.workloads.manifests.inside import Slice
from speechmeter.workloads.manifests.lines import UNREADABLE_LINE, numbered_lines
from speechmeter.workloads.manifests.utterance import Refused, Utterance, lasting, seconds, whole, without_suffix

IDS = ".ids"
"""The ending of the file beside a fairseq list that has an id in each line, where ids are not the paths' stems."""
SCP, FEATS = "wav.scp", "feats.scp"
SUFFIXES = frozenset(
    {".wav", ".flac", ".mp3", ".ogg", ".oga", ".opus", ".aiff", ".aif", ".au", ".snd", ".caf", ".w64", ".sph"}
)
"""Endings of sound files that libsndfile decodes."""
FOREIGN = frozenset(
    {".m4a", ".aac", ".mp4", ".m4b", ".mov", ".wma", ".amr", ".3gp", ".webm", ".mka", ".mkv", ".ac3", ".ape", ".wv"}
)
"""Endings of sound files that it does not decode: without PyAV they are left out, and counted."""
_SHOWN = 60
_MOST_KINDS = 6


def _letters(line: str) -> str:
    """`H E | I T` as `HE IT`."""
    return " ".join(line.replace(" ", "").replace("|", " ").split())


_TEXTS: dict[str, Callable[[str], str]] = {".wrd": str.strip, ".txt": str.strip, ".ltr": _letters}


def read_fairseq(path: Path, root: Path | None) -> Iterator[Utterance | Refused]:
    """wav2vec's and fairseq's TSV: the root on line 1, then `path<TAB>samples`; texts in a file of the same stem."""
    lines = numbered_lines(path)
    _, first = next(lines, (0, ""))
    above = str(root.absolute()) if root is not None else (first or "").strip()
    texts, ids = _fairseq_texts(path), _companion(path, IDS)
    for number, line in lines:
        if line is not None and not line.strip():
            continue
        text, name = next(texts, None), next(ids, None)
        if line is None:
            yield Refused(id=f"line {number}", reason=UNREADABLE_LINE)
            continue
        relative, tab, samples = line.partition("\t")
        try:
            frames = whole({"samples": samples.strip()}, "samples")
        except ValueError:
            frames = None
        if not tab or frames is None:
            yield Refused(id=f"line {number}", reason="not `path<TAB>samples`")
            continue
        plain = relative.strip()
        yield Utterance(
            id=name or without_suffix(plain), path=f"{above}/{plain}", folder=str(path.parent), frames=frames, text=text
        )


def _fairseq_texts(path: Path) -> Iterator[str | None]:
    """The text of each item; an empty line belongs to an item without a text."""
    for suffix, clean in _TEXTS.items():
        if path.with_suffix(suffix).is_file():
            return (clean(line) or None if line is not None else None for line in _companion(path, suffix))
    return iter(())


def _companion(path: Path, suffix: str) -> Iterator[str | None]:
    """The lines of the file beside a list. Raises InputError where there is not one line for each item."""
    beside = path.with_suffix(suffix)
    if not beside.is_file():
        return iter(())
    items = sum(line is None or bool(line.strip()) for _, line in islice(numbered_lines(path), 1, None))
    lines = written = 0
    for lines, line in numbered_lines(beside):
        written = lines if line is None or line.strip() else written
    if lines < items or written > items:
        count = "1 line" if lines == 1 else f"{lines} lines"
        raise InputError(
            f"{path.name} has {items} items but {beside.name} has {count}, so they cannot be matched",
            key="data",
            fix=f"correct {beside.name}, or move it away",
        )
    return (line for _, line in numbered_lines(beside))


def read_kaldi(path: Path, root: Path | None) -> Iterator[Utterance | Refused]:
    """Kaldi's data directory: an item for each segment, or for each recording of wav.scp without segments.

    Commands in wav.scp are never run. Raises InputError where there are texts and none belongs to an item.
    """
    scp = path / SCP if path.is_dir() else path
    folder, beside = str(root or scp.parent), scp.parent
    texts, speakers = dict(_table(beside / "text")), dict(_table(beside / "utt2spk"))
    segments = beside / "segments" if (beside / "segments").is_file() else None
    items = segments or scp
    if texts and not any(name in texts for name, _ in _table(items)):
        raise InputError(
            f"the file `text` has no id of {items.name}; its first id is {next(iter(texts))[:_SHOWN]!r}",
            key="data",
            fix="correct the file `text`, or move it away",
        )
    recordings = dict(_table(scp)) if segments else {}
    durations = {} if segments else dict(_table(beside / "utt2dur"))
    for name, rest in _table(items):
        try:
            found = _segment(rest.split(), recordings) if segments else _recording(rest, durations.get(name))
            yield replace(found, id=name, folder=folder, text=texts.get(name), speaker=speakers.get(name))
        except ValueError as error:
            yield Refused(id=name, reason=str(error))


def read_kaldi_features(path: Path, root: Path | None) -> Iterator[Utterance | Refused]:
    """Kaldi's feats.scp: matrices of features in archives, with the texts beside it."""
    scp = path / FEATS if path.is_dir() else path
    texts, speakers = dict(_table(scp.parent / "text")), dict(_table(scp.parent / "utt2spk"))
    for name, rest in _table(scp):
        place = split_place(rest)
        if place is None:
            yield Refused(id=name, reason="a line of feats.scp needs an archive and an offset, such as feats.ark:123")
            continue
        inside = (root or scp.parent) / place[0]
        file = inside if inside.exists() else Path(place[0])
        matrix = ArkMatrix(path=file, offset=place[1])
        yield Utterance(id=name, array=matrix, text=texts.get(name), speaker=speakers.get(name))


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


def _recording(sound: str, duration: str | None = None) -> Utterance:
    if not sound:
        raise ValueError("this line of wav.scp has no path")
    if sound.endswith("|"):
        raise ValueError(
            "wav.scp has a command instead of a path; commands are never run, so write its audio to a file"
        )
    stated_s, place = seconds({"utt2dur": duration}, "utt2dur"), split_place(sound)
    if place is not None:  # a WAV file in an archive; its header has its size
        return Utterance(id="", path=place[0], inside=Slice(offset=place[1]), duration_s=stated_s)
    return Utterance(id="", path=sound, duration_s=stated_s)


def _segment(fields: list[str], recordings: dict[str, str]) -> Utterance:
    if len(fields) < 3:
        raise ValueError("a line of `segments` needs a recording, a start and an end")
    if fields[0] not in recordings:
        raise ValueError(f"wav.scp has no recording {fields[0]!r}")
    recording = _recording(recordings[fields[0]])
    ends = {"start": fields[1], "end": "" if float(fields[2]) < 0 else fields[2]}  # -1: to the end of the file
    start_s, end_s = seconds(ends, "start") or 0.0, seconds(ends, "end")
    return replace(recording, part=True, start_s=start_s, duration_s=lasting(start_s, end_s))


def read_folder(path: Path, root: Path | None) -> Iterator[Utterance | Refused]:
    """Every sound file in and below a folder, by name; a text file of the same stem is its transcript.

    Hidden files and folders are passed over. Files of one stem have their endings in their ids. Sound of a kind that
    cannot be decoded is refused.
    """
    base = root or path
    for parent, folders, names in os.walk(base):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        decoded = SUFFIXES | FOREIGN if compressed.is_installed() else SUFFIXES
        for name in sorted(name for name in names if _ending(name) in FOREIGN - decoded):
            yield Refused(id=name, reason="cannot be decoded", kind=_ending(name))
        sounds = sorted(name for name in names if _ending(name) in decoded)
        stems = Counter(Path(name).stem for name in sounds)
        for name in sounds:
            relative = Path(parent, name).relative_to(base)
            beside = base / relative.with_suffix(".txt")
            lines = numbered_lines(beside) if beside.is_file() else ()
            yield Utterance(
                id=without_suffix(str(relative)) if stems[relative.stem] == 1 else str(relative),
                path=str(relative),
                folder=str(base),
                text=next((line.strip() for _, line in lines if line), None),
            )


def contents(path: Path) -> str:
    """What a folder holds, in a few words: `3 .m4a, 1 .txt, 2 folders`; `nothing`."""
    kinds: Counter[str] = Counter()
    for entry in path.iterdir():
        if not entry.name.startswith("."):
            kinds["folder" if entry.is_dir() else _ending(entry.name) or "file without a suffix"] += 1
    named = [f"{count} {kind}{'s' if count > 1 and kind == 'folder' else ''}" for kind, count in kinds.most_common()]
    return ", ".join([*named[:_MOST_KINDS], *(["…"] if len(named) > _MOST_KINDS else [])]) or "nothing"


def _ending(name: str) -> str:
    return "" if name.startswith(".") else Path(name).suffix.lower()
