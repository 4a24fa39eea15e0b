"""Writing lists: fairseq's TSV, NeMo's JSON lines, the `.npy` list of fairseq's benchmark. All read back the same."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from speechmeter.core.errors import InputError
from speechmeter.workloads.manifests.fairseq import IDS
from speechmeter.workloads.manifests.utterance import Utterance, without_suffix

_TEXT = ".wrd"
_BREAK = re.compile(r"[\t\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
"""What ends a field or a line when the list is read back."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An item to be written: what its list said, true seconds, frames of its file, where it starts, how to read it."""

    utterance: Utterance
    seconds: float
    file_frames: int
    start_s: float
    read: Callable[[], Any]


def write(path: Path, entries: Sequence[Entry]) -> list[Path]:
    """Write the list, its format by the file's ending, and return the files made: all of them, or none.

    Raises InputError where the items cannot be written in this format, OSError where the disk refuses.
    """
    check_format(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as drafts:
        return [
            draft.replace(path.with_name(draft.name))
            for draft in WRITERS[path.suffix](Path(drafts, path.name), entries)
        ]


def check_format(path: Path) -> None:
    """Raise InputError for a file whose ending names no format."""
    if path.suffix not in WRITERS:
        endings = ", ".join(WRITERS)
        raise InputError(f"{path.name!r} does not say a format", where="-o", fix=f"end it with one of {endings}")


def companions(path: Path) -> list[Path]:
    """Files that belong to a list of this name."""
    return [path.with_suffix(_TEXT), path.with_suffix(IDS)] if path.suffix == ".tsv" else []


def _tsv(path: Path, entries: Sequence[Entry]) -> list[Path]:
    _need_files(entries)
    if any(entry.utterance.part for entry in entries):
        raise InputError(
            "a TSV lists whole files, and some items are parts of one", where="-o", fix="write set.jsonl or set.npy"
        )
    files = [entry.utterance.file.absolute() for entry in entries]
    root = Path(os.path.commonpath([file.parent for file in files]))
    names = [file.relative_to(root).as_posix() for file in files]
    ids = [entry.utterance.id for entry in entries]
    broken = next((word for word in (str(root), *names, *ids) if _BREAK.search(word)), None)
    if broken is not None:
        raise InputError(f"a line of a TSV cannot hold {broken!r}", where="-o", fix="write set.jsonl, or rename it")
    rows = [f"{name}\t{entry.file_frames}" for name, entry in zip(names, entries, strict=True)]
    made = [_lines(path, [str(root), *rows])]
    texts = [entry.utterance.text for entry in entries]
    if any(text is not None for text in texts):  # an item without one has an empty line
        made.append(_lines(path.with_suffix(_TEXT), [" ".join((text or "").split()) for text in texts]))
    if ids != [without_suffix(name) for name in names]:
        made.append(_lines(path.with_suffix(IDS), ids))
    return made


def _jsonl(path: Path, entries: Sequence[Entry]) -> list[Path]:
    _need_files(entries)
    return [_lines(path, [json.dumps(_nemo(entry), ensure_ascii=False) for entry in entries])]


def _nemo(entry: Entry) -> dict[str, Any]:
    said = entry.utterance
    fields: dict[str, Any] = {"id": said.id, "audio_filepath": str(said.file.absolute()), "duration": entry.seconds}
    if said.part:
        fields["offset"] = entry.start_s
    if said.channel is not None:
        fields["channel"] = said.channel
    words = {"text": said.text, "speaker": said.speaker}
    return {**fields, **{key: word for key, word in words.items() if word is not None}}


def _npy(path: Path, entries: Sequence[Entry]) -> list[Path]:
    import numpy as np

    try:
        import torch
    except ImportError:
        raise InputError(
            "the lists hold torch tensors, and torch is not installed",
            where="-o",
            fix="pip install 'speechmeter[torch]'",
        ) from None
    items: Any = np.empty(len(entries), dtype=object)
    for place, entry in enumerate(entries):
        data = torch.from_numpy(entry.read()[None].copy())
        inputs = {"src_tokens": data, "src_lengths": torch.tensor([data.shape[1]])}
        said = entry.utterance
        items[place] = {"id": said.id, "net_input": inputs, **({"text": said.text} if said.text is not None else {})}
    with path.open("wb") as file:
        np.save(file, items, allow_pickle=True)
    return [path]


def _need_files(entries: Iterable[Entry]) -> None:
    if any(entry.utterance.array is not None for entry in entries):
        raise InputError("the items are in the list itself, not in files", where="-o", fix="write set.npy")


def _lines(path: Path, lines: Iterable[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


WRITERS: Mapping[str, Callable[[Path, Sequence[Entry]], list[Path]]] = {".tsv": _tsv, ".jsonl": _jsonl, ".npy": _npy}
