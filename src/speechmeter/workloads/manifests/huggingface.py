"""Hugging Face datasets on disk: Parquet files with bytes of sound, and folders that `save_to_disk` wrote.

Texts and ids are read from the list of columns; sound is read row by row, when it is asked for. Nothing is downloaded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from speechmeter.core.errors import InputError
from speechmeter.core.files import MIB, read_text
from speechmeter.workloads.manifests.columns import Columns
from speechmeter.workloads.manifests.inside import ArrowCell, Inside, ParquetCell, arrow_table
from speechmeter.workloads.manifests.utterance import Refused, Utterance, speaker_of, transcript, without_suffix

STATE, SPLITS = "state.json", "dataset_dict.json"
_AUDIO = ("audio", "speech", "wav", "sound")
_TEXT = ("text", "transcription", "sentence", "transcript", "normalized_text")
_ID = ("id", "utt_id", "audio_id", "key", "file_name")
_SPEAKER = ("speaker", "speaker_id", "spk_id", "spk", "client_id")
_ROLES: Mapping[str, Sequence[str]] = {"audio": _AUDIO, "text": _TEXT, "id": _ID, "speaker": _SPEAKER}
_MOST_FOOTER = 64 * MIB


def is_dataset(path: Path) -> bool:
    """Whether a folder holds Parquet files, or is what `save_to_disk` wrote."""
    return (path / STATE).is_file() or (path / SPLITS).is_file() or bool(_parquet_files(path))


def read(path: Path, root: Path | None, columns: Columns) -> Iterator[Utterance | Refused]:
    """An item a row, its sound not read yet. Raises InputError without pyarrow, and for a column that is not there."""
    if find_spec("pyarrow") is None:
        raise InputError(
            "this dataset needs pyarrow, which is not installed", key="data", fix="pip install 'speechmeter[parquet]'"
        )
    if path.is_dir() and (path / SPLITS).is_file() and not (path / STATE).is_file():
        splits = sorted(one.name for one in path.iterdir() if (one / STATE).is_file())
        raise InputError(
            f"{str(path)!r} holds several splits: {', '.join(splits)}", key="data", fix="name the folder of one of them"
        )
    index = 0
    for file in _files(path):
        reading = _arrow_rows(file, columns) if (path / STATE).is_file() else _parquet_rows(file, columns)
        for fields, inside, names in reading:
            yield _utterance(index, fields, inside, names, file, root or path)
            index += 1


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    if not (path / STATE).is_file():
        return _parquet_files(path)
    try:
        state = json.loads(read_text(path / STATE, MIB))
        names = [str(one["filename"]) for one in state["_data_files"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{STATE} cannot be read: {error}", where=str(path), fix="save the dataset again") from error
    if any(Path(name).name != name for name in names):
        raise InputError(f"{STATE} names a file outside this folder", where=str(path), fix="save the dataset again")
    return [path / name for name in names]


def _parquet_files(path: Path) -> list[Path]:
    """Parquet files in a folder, or in its folder `data`."""
    return sorted(path.glob("*.parquet")) or sorted(path.glob("data/*.parquet"))


_Rows = Iterator[tuple[dict[str, Any], Inside, Mapping[str, str]]]


@contextmanager
def _clear_errors(file: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        why = " ".join(str(error).split())
        raise InputError(f"{str(file)!r} cannot be read: {why}", key="data", fix="use a complete file") from error


def _parquet_rows(file: Path, columns: Columns) -> _Rows:
    """(fields, where the sound is, names of columns by role) of each row; bytes of sound are not read."""
    import pyarrow.parquet as pq

    with _clear_errors(file):
        _check_footer(file)
        with pq.ParquetFile(file) as opened:
            names = _names(opened.schema_arrow, columns, file)
            asked = _without_sound(opened.schema_arrow, names)
            for group in range(opened.num_row_groups):
                start = 0
                for batch in opened.iter_batches(batch_size=4096, row_groups=[group], columns=asked):
                    for row, fields in enumerate(batch.to_pylist()):
                        yield fields, ParquetCell(group=group, row=start + row, column=names["audio"]), names
                    start += batch.num_rows


def _check_footer(file: Path) -> None:
    """Refuse a footer that is larger than any list of columns, before it is read."""
    with file.open("rb") as opened:
        opened.seek(max(0, file.stat().st_size - 8))
        tail = opened.read(8)
    if len(tail) == 8 and int.from_bytes(tail[:4], "little") > _MOST_FOOTER:
        raise ValueError(f"its list of columns (the footer) is larger than {_MOST_FOOTER:,} bytes")


def _arrow_rows(file: Path, columns: Columns) -> _Rows:
    with _clear_errors(file):
        table = arrow_table(str(file), file.stat().st_mtime_ns)
        names = _names(table.schema, columns, file)
        texts = table.select([name for role, name in names.items() if role != "audio"])
        audio = table[names["audio"]]
        for row in range(table.num_rows):
            cell = audio[row]
            path = cell["path"].as_py() if hasattr(cell, "keys") and cell.is_valid and "path" in cell else None
            fields = {name: texts[name][row].as_py() for name in texts.column_names}
            yield {**fields, names["audio"]: {"path": path}}, ArrowCell(row=row, column=names["audio"]), names


def _names(schema: Any, columns: Columns, file: Path) -> dict[str, str]:
    """The name of each role's column. Raises InputError where the sound is in none, or a named one is not there."""
    given = dict(columns)
    there = list(schema.names)
    if missing := [name for name in given.values() if name not in there]:
        raise InputError(
            f"{file.name} has no column {missing[0]!r}, only {', '.join(there)[:200]}", key="columns",
            fix="name one of these",
        )  # fmt: skip
    found = {role: given.get(role) or _first(role, schema) for role in _ROLES}
    if found["audio"] is None:
        raise InputError(
            f"{file.name} has no column of sound among {', '.join(there)[:200]}", key="columns",
            fix="name it: `columns: audio=NAME`",
        )  # fmt: skip
    return {role: name for role, name in found.items() if name is not None}


def _first(role: str, schema: Any) -> str | None:
    return next((name for name in _ROLES[role] if name in schema.names), None)


def _without_sound(schema: Any, names: Mapping[str, str]) -> list[str]:
    """What a list is made from: the columns of texts, and of the sound its path alone, where it has one."""
    import pyarrow as pa

    kind = schema.field(names["audio"]).type
    nested = [f"{names['audio']}.path"] if pa.types.is_struct(kind) and kind.get_field_index("path") >= 0 else []
    return [*(name for role, name in names.items() if role != "audio"), *nested]


def _utterance(
    index: int, fields: Mapping[str, Any], inside: Inside, names: Mapping[str, str], file: Path, folder: Path
) -> Utterance | Refused:
    own = {role: fields.get(name) for role, name in names.items()}
    audio = own.pop("audio", None)
    path = audio.get("path") if isinstance(audio, Mapping) else None
    named = own.get("id") if isinstance(own.get("id"), str | int) else None
    name = str(named) if named not in (None, "") else without_suffix(Path(path).name) if path else f"row {index}"
    try:
        return Utterance(
            id=name,
            path=str(file.absolute()),
            inside=inside,
            text=transcript(own, ("text",)),
            speaker=speaker_of(own),
        )
    except ValueError as error:
        return Refused(id=name, reason=str(error))
