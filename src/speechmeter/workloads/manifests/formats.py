"""The formats of lists by name, and how a format is recognised by what a path holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from speechmeter.core.errors import InputError
from speechmeter.core.plugins import nearest
from speechmeter.workloads.manifests import field_lists, huggingface, pickled, plain_lists, shards
from speechmeter.workloads.manifests.columns import Columns
from speechmeter.workloads.manifests.lines import json_begins, json_objects, numbered_lines
from speechmeter.workloads.manifests.utterance import Refused, Utterance

AUTO, FOLDER = "auto", "folder"
Read = Callable[[Path, Path | None], Iterator[Utterance | Refused]]
FORMATS: Mapping[str, Read] = {
    "fairseq": plain_lists.read_fairseq,
    "nemo": field_lists.read_nemo,
    "speechbrain-csv": field_lists.read_speechbrain_csv,
    "speechbrain-json": field_lists.read_speechbrain_json,
    "kaldi": plain_lists.read_kaldi,
    "lhotse": field_lists.read_lhotse,
    "audiofolder": field_lists.read_audiofolder,
    "wenet": field_lists.read_wenet,
    FOLDER: plain_lists.read_folder,
    "npy": pickled.read,
    "kaldi-feats": plain_lists.read_kaldi_features,
    "nemo-tarred": shards.read_nemo_tarred,
    "shar": shards.read_shar,
    "webdataset": partial(shards.read_webdataset, columns=()),
    "huggingface": partial(huggingface.read, columns=()),
}
_WITH_COLUMNS = {"webdataset": shards.read_webdataset, "huggingface": huggingface.read}
"""Formats whose columns have no fixed names."""
_BY_SUFFIX = {
    ".tsv": "fairseq", ".npy": "npy", ".scp": "kaldi", ".tar": "webdataset", ".parquet": "huggingface"
}  # fmt: skip
_LISTS = (".list", ".txt", ".lst", "")
_WIDEST = 120
_FIX = f"set `format` to one of {', '.join(FORMATS)}"
_NAME_A_LIST = "use a list of utterances or a folder"


def read(
    path: Path, format: str = AUTO, root: Path | None = None, columns: Columns = ()
) -> Iterator[Utterance | Refused]:
    """Utterances and refused lines in the order of the list. Raises InputError when it cannot be read as one.

    `columns` name those of a format that leaves their names open.
    """
    name = recognised(path, format)
    if not columns:
        return FORMATS[name](path, root)
    if name not in _WITH_COLUMNS:
        fix = f"it applies to the formats {' and '.join(_WITH_COLUMNS)}"
        raise InputError(f"the columns of the format {name} have fixed names", key="columns", fix=fix)
    return _WITH_COLUMNS[name](path, root, columns)


def recognised(path: Path, format: str = AUTO) -> str:
    """The name of the format: the given one, else the one that what the path holds has. Raises InputError if none."""
    if not path.exists():
        raise InputError(f"{str(path)!r} does not exist", key="data", fix=_NAME_A_LIST)
    if format not in (AUTO, *FORMATS):
        raise InputError(f"there is no format {format!r}", key="format", fix=nearest(format, [AUTO, *FORMATS]))
    if format != AUTO:
        return format
    if not path.is_dir():
        return _of_file(path)
    if (path / plain_lists.SCP).is_file():
        return "kaldi"
    if (path / plain_lists.FEATS).is_file():
        return "kaldi-feats"
    if huggingface.is_dataset(path):
        return "huggingface"
    if tars := [*path.glob("*.tar")]:
        return "shar" if any(tar.name.startswith("recording.") for tar in tars) else "webdataset"
    return "audiofolder" if any((path / name).is_file() for name in field_lists.METADATA) else FOLDER


def _of_file(path: Path) -> str:
    plain = path.with_suffix("") if path.suffix == ".gz" else path
    if plain.suffix.lower() in plain_lists.SUFFIXES | plain_lists.FOREIGN:
        raise InputError(
            f"{str(path)!r} is a sound file, not a list of them",
            key="data",
            fix="use `audio`, or name its folder",
        )
    if plain.name == plain_lists.FEATS:
        return "kaldi-feats"
    if _is_list_of_tars(plain):
        return "webdataset"
    if plain.suffix in _BY_SUFFIX:
        return _BY_SUFFIX[plain.suffix]
    if plain.suffix == ".csv":
        _, header = next(numbered_lines(path), (0, ""))
        columns = [column.strip() for column in (header or "").split(",")]
        found = {"file_name": "audiofolder", "ID": "speechbrain-csv"}
        if named := next((found[column] for column in found if column in columns), None):
            return named
        raise InputError(f"{str(path)!r} has neither a column ID nor file_name", key="data", fix=_FIX)
    if plain.suffix == ".json" and json_begins(path) != "[" and not _is_json_line(path):
        return "speechbrain-json"
    return _of_objects(path)


def _is_list_of_tars(path: Path) -> bool:
    """Whether the first line is the name of a tar file, as in WeNet's lists of shards."""
    _, line = next(numbered_lines(path), (0, "")) if path.suffix in _LISTS else (0, "")
    return (line or "").strip().endswith(".tar")


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
        why = why or f"{line} has the keys {', '.join(map(repr, fields)) or '(none)'}"[:_WIDEST]
        if any(key in fields for key in field_lists.NEMO_PATHS):
            return "nemo-tarred" if "shard_id" in fields else "nemo"
        if not {"recording", "tracks", "supervisions"}.isdisjoint(fields):
            return "lhotse"
        if "key" in fields and "wav" in fields:
            return "wenet"
        if "file_name" in fields:
            return "audiofolder"
    if not why:
        raise InputError(f"{str(path)!r} is empty", key="data", fix=_NAME_A_LIST)
    raise InputError(f"the format of {str(path)!r} is not recognised: {why}", key="data", fix=_FIX)
