"""The formats by name, and how one is told from what a path holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from speechmeter.core.errors import InputError
from speechmeter.core.plugins import nearest
from speechmeter.workloads.manifests import fairseq, folder, kaldi, lhotse, nemo, sample_list, speechbrain, wenet
from speechmeter.workloads.manifests.lines import json_begins, json_objects, numbered_lines
from speechmeter.workloads.manifests.utterance import Refused, Utterance

AUTO, FOLDER = "auto", "folder"
Read = Callable[[Path, Path | None], Iterator[Utterance | Refused]]
FORMATS: Mapping[str, Read] = {
    "fairseq": fairseq.read,
    "nemo": nemo.read,
    "speechbrain-csv": speechbrain.read_csv,
    "speechbrain-json": speechbrain.read_json,
    "kaldi": kaldi.read,
    "lhotse": lhotse.read,
    "audiofolder": folder.read_metadata,
    "wenet": wenet.read,
    FOLDER: folder.read,
    "npy": sample_list.read,
}
_WIDEST = 120
_FIX = f"say it with format: {', '.join(FORMATS)}"


def read(path: Path, format: str = AUTO, root: Path | None = None) -> Iterator[Utterance | Refused]:
    """Utterances and refused lines, as they stand in the list. Raises InputError when it cannot be read as one."""
    return FORMATS[told(path, format)](path, root)


def told(path: Path, format: str = AUTO) -> str:
    """The name of the format: the given one, else by what the path holds. Raises InputError when nothing fits."""
    if not path.exists():
        raise InputError(f"{str(path)!r} does not exist", where="data", fix="name a list of utterances or a folder")
    if format == AUTO:
        return _of_folder(path) if path.is_dir() else _of_file(path)
    if format not in FORMATS:
        raise InputError(f"there is no format {format!r}", where="data", fix=nearest(format, [AUTO, *FORMATS]))
    return format


def _of_folder(path: Path) -> str:
    if (path / kaldi.SCP).is_file():
        return "kaldi"
    return "audiofolder" if any((path / name).is_file() for name in folder.METADATA) else FOLDER


def _of_file(path: Path) -> str:
    by_suffix = {".tsv": "fairseq", ".npy": "npy", ".scp": "kaldi"}
    plain = path.with_suffix("") if path.suffix == ".gz" else path
    if plain.suffix.lower() in folder.SUFFIXES | folder.FOREIGN:
        raise InputError(
            f"{str(path)!r} is a sound file, not a list of them",
            where="data",
            fix="feed it with --audio or `audio:`, or name its folder",
        )
    if plain.suffix in by_suffix:
        return by_suffix[plain.suffix]
    if plain.suffix == ".csv":
        return _of_csv(path)
    if plain.suffix == ".json" and json_begins(path) != "[" and not _is_json_line(path):
        return "speechbrain-json"
    return _of_objects(path)


def _of_csv(path: Path) -> str:
    _, header = next(numbered_lines(path), (0, ""))
    columns = [column.strip() for column in (header or "").split(",")]
    if "file_name" in columns:
        return "audiofolder"
    if "ID" in columns:
        return "speechbrain-csv"
    raise InputError(f"{str(path)!r} has neither a column ID nor file_name", where="data", fix=_FIX)


def _is_json_line(path: Path) -> bool:
    """Whether the first line is an object of plain fields: JSON lines under the name .json, as NeMo writes them."""
    _, line = next(numbered_lines(path), (0, ""))
    try:
        found = json.loads(line or "")
    except ValueError:
        return False
    return isinstance(found, dict) and not all(isinstance(value, dict) for value in found.values())


def _of_objects(path: Path) -> str:
    why = ""
    for line, fields in json_objects(path):
        if isinstance(fields, str):
            why = why or f"{line}: {fields}"
            continue
        why = why or f"{line} has the keys {', '.join(map(repr, fields)) or 'of nothing'}"[:_WIDEST]
        if any(key in fields for key in nemo.PATHS):
            return "nemo"
        if not {"recording", "tracks", "supervisions"}.isdisjoint(fields):
            return "lhotse"
        if "key" in fields and "wav" in fields:
            return "wenet"
        if "file_name" in fields:
            return "audiofolder"
    if not why:
        raise InputError(f"{str(path)!r} is empty", where="data", fix="name a list of utterances or a folder")
    raise InputError(f"the format of {str(path)!r} cannot be told: {why}", where="data", fix=_FIX)
