"""Writing lists: fairseq's TSV, NeMo's JSON lines, the `.npy` list of fairseq's benchmark. All can be read back."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from speechmeter.core.errors import InputError
from speechmeter.core.live import Anchors
from speechmeter.workloads import sound
from speechmeter.workloads.anchors import Joined
from speechmeter.workloads.manifests.plain_lists import IDS
from speechmeter.workloads.manifests.utterance import MIX, PACKAGE, Utterance, without_suffix
from speechmeter.workloads.selection import Selection, Usable
from speechmeter.workloads.sound import Taste

_TEXT = ".wrd"
# characters that would end a field or a line when the list is read back
_BREAK = re.compile(r"[\t\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


def write(path: Path, selection: Selection, taste: Taste) -> list[Path]:
    """Write the items as a list, its format by the file's ending. Returns the files made: all of them, or none.

    Raises InputError where the items cannot be written in this format, and OSError where the files cannot be written.
    """
    check_format(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as drafts:
        made = WRITERS[path.suffix](Path(drafts, path.name), selection.items, taste)
        return [draft.replace(path.with_name(draft.name)) for draft in made]


def write_streams(path: Path, streams: Sequence[Joined]) -> list[float]:
    """A FLAC file for each stream, in a folder named after the list, and the list; the seconds of each stream."""
    import soundfile

    folder = path.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for stream in streams:
        file = folder / f"{stream.id}.flac"
        soundfile.write(file, stream.samples, sound.RATE)
        fields = {"id": stream.id, "audio_filepath": str(file.absolute()), "duration": len(stream.samples) / sound.RATE}
        rows.append({**fields, **({"text": stream.text} if stream.text else {}), **anchor_fields(stream.anchors)})
    _lines(path, [json.dumps(row, ensure_ascii=False) for row in rows])
    return [len(stream.samples) / sound.RATE for stream in streams]


def check_format(path: Path) -> None:
    """Raise InputError for a file whose ending names no format."""
    if path.suffix not in WRITERS:
        endings = " or ".join(WRITERS)
        raise InputError(f"the suffix of {path.name!r} is not supported", key="output", fix=f"end it with {endings}")


def companions(path: Path) -> list[Path]:
    """Files that belong to a list of this name."""
    return [path.with_suffix(_TEXT), path.with_suffix(IDS)] if path.suffix == ".tsv" else []


def _tsv(path: Path, items: Sequence[Usable], taste: Taste) -> list[Path]:
    _need_files(items)
    if any(item.utterance.part for item in items):
        raise InputError(
            "a TSV lists whole files, and some items are parts of a file",
            key="output",
            fix="use the suffix .jsonl or .npy",
        )
    files = [item.utterance.file.absolute() for item in items]
    root = Path(os.path.commonpath([file.parent for file in files]))
    names = [file.relative_to(root).as_posix() for file in files]
    ids = [item.utterance.id for item in items]
    broken = next((word for word in (str(root), *names, *ids) if _BREAK.search(word)), None)
    if broken is not None:
        raise InputError(
            f"a line of a TSV cannot hold {broken!r}", key="output", fix="use the suffix .jsonl, or rename the item"
        )
    rows = [f"{name}\t{item.file.frames}" for name, item in zip(names, items, strict=True)]
    made = [_lines(path, [str(root), *rows])]
    texts = [item.utterance.text for item in items]
    if any(text is not None for text in texts):  # an item without one has an empty line
        made.append(_lines(path.with_suffix(_TEXT), [" ".join((text or "").split()) for text in texts]))
    if ids != [without_suffix(name) for name in names]:
        made.append(_lines(path.with_suffix(IDS), ids))
    return made


def _jsonl(path: Path, items: Sequence[Usable], taste: Taste) -> list[Path]:
    _need_files(items)
    rows = []
    for item in items:
        said = item.utterance
        start_s = said.start_s or said.start_frame / item.file.rate
        # the channel that was chosen, where the list itself names none and the file has several
        mono = taste.channel == MIX and item.file.mixed == 1
        channel = said.channel if said.channel is not None or mono else taste.channel
        fields: dict[str, Any] = {"id": said.id, "audio_filepath": _portable(said), "duration": item.seconds}
        fields |= {"offset": start_s} if said.part else {}
        optional = {"channel": channel, "text": said.text, "speaker": said.speaker}
        fields |= {key: value for key, value in optional.items() if value is not None}
        fields |= anchor_fields(said.anchors)
        rows.append(json.dumps(fields, ensure_ascii=False))
    return [_lines(path, rows)]


def _portable(said: Utterance) -> str:
    """The absolute path; of a file inside a package as the list has it, which is right on other machines too."""
    return said.path if said.path.startswith(PACKAGE) else str(said.file.absolute())


def anchor_fields(anchors: Anchors) -> dict[str, Any]:
    """Anchors as fields of a JSON line; those that are unknown are left out."""
    known = {"speech_start_s": anchors.speech_start_s, "speech_end_s": anchors.speech_end_s}
    fields: dict[str, Any] = {key: round(value, 4) for key, value in known.items() if value is not None}
    if anchors.words:
        fields["words"] = [[word.text, round(word.start_s, 4), round(word.end_s, 4)] for word in anchors.words]
    return fields | ({"anchors_source": anchors.source} if fields else {})


def _npy(path: Path, items: Sequence[Usable], taste: Taste) -> list[Path]:
    import numpy as np

    try:
        import torch
    except ImportError:
        raise InputError(
            "a .npy list holds torch tensors, and torch is not installed",
            key="output",
            fix="pip install 'speechmeter[torch]'",
        ) from None
    objects: Any = np.empty(len(items), dtype=object)
    for index, item in enumerate(items):
        data = torch.from_numpy(sound.read(item.utterance, taste)[None].copy())
        inputs = {"src_tokens": data, "src_lengths": torch.tensor([data.shape[1]])}
        said = item.utterance
        objects[index] = {"id": said.id, "net_input": inputs, **({"text": said.text} if said.text is not None else {})}
    with path.open("wb") as file:
        np.save(file, objects, allow_pickle=True)
    return [path]


def _need_files(items: Iterable[Usable]) -> None:
    if any(item.utterance.array is not None or item.utterance.inside is not None for item in items):
        raise InputError(
            "the sound of these items is in the list itself, or inside a larger file",
            key="output",
            fix="use the suffix .npy",
        )


def _lines(path: Path, lines: Iterable[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


_Write = Callable[[Path, Sequence[Usable], Taste], list[Path]]
WRITERS: Mapping[str, _Write] = {
    ".tsv": _tsv,
    ".jsonl": _jsonl,
    ".npy": _npy,
}
