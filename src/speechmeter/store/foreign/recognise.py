"""Which tool wrote a file: told from its content, never from its name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from speechmeter.core.errors import InputError
from speechmeter.core.files import MIB, opened, read_bytes
from speechmeter.store.foreign import aiperf, guidellm, stt_benchmark, vllm_bench
from speechmeter.store.foreign.found import Found, name

FORMATS = "vllm bench serve, guidellm and aiperf (JSON), and stt-benchmark (SQLite)"
_LARGEST = 256 * MIB
_FIX = f"import reads results of {FORMATS}"


def read(path: Path) -> Found:
    """What a file holds. Raises InputError for a file that no reader knows, or that is damaged."""
    try:
        _check_plain(path)
        with opened(path, None) as file:
            head = file.read(len(stt_benchmark.MAGIC))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot be read: {why}", where=str(path), fix="name a file that exists") from error
    if head == stt_benchmark.MAGIC:
        return stt_benchmark.read(path)
    found = _objects(path)
    ours = [vllm_bench.is_ours(data) for _, data in found]
    if any(ours):
        if not all(ours):
            where = f"{path}: {found[ours.index(False)][0]}"
            fix = "keep results of one tool in a file"
            raise InputError("this is not a result of vllm bench serve, as others in this file", where=where, fix=fix)
        return vllm_bench.read(found, path.name)
    if found and aiperf.is_record(found[0][1]):
        raise InputError(
            "this file has single requests of aiperf and no summary",
            where=str(path), fix="import the profile_export_aiperf.json in the same folder",
        )  # fmt: skip
    if len(found) == 1:
        (_, data), *_ = found
        if guidellm.is_ours(data):
            return guidellm.read(data, path.name)
        if aiperf.is_ours(data):
            return aiperf.read(data, path.name)
    raise InputError("the format is unknown", where=str(path), fix=_FIX)


def _check_plain(path: Path) -> None:
    """A pipe can be read only once, and a device has no end."""
    if path.is_dir():
        raise InputError("this is a directory", where=str(path), fix="name a result file in it")
    if path.exists() and not path.is_file():
        raise InputError("this is a pipe or a device, not a file", where=str(path), fix="save the results to a file")


def _objects(path: Path) -> list[tuple[str, Any]]:
    """(place, value) of the JSON values of a file: one, those of a list, or one a line."""
    try:
        text = read_bytes(path, _LARGEST).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 text at byte {error.start}", where=str(path), fix=_FIX) from error
    if not text.strip():
        raise InputError("the file is empty", where=str(path), fix=_FIX)
    lines = [(f"line {number}", line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if len(lines) > 1 and _is_json(lines[0][1]):
        return [(place, _value(line, f"{path}: {place}")) for place, line in lines]
    whole = _value(text, str(path))
    return [(f"item {n}", one) for n, one in enumerate(whole, 1)] if isinstance(whole, list) else [("", whole)]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _value(text: str, where: str) -> Any:
    """A JSON value. Raises InputError, with the line and column, where it is none or names a key twice."""
    try:
        return json.loads(text, object_pairs_hook=_each_once)
    except json.JSONDecodeError as error:
        cut = "; the file may be truncated" if error.pos >= len(text.rstrip()) else ""
        why = f"{error.msg} at line {error.lineno}, column {error.colno}{cut}"
    except RecursionError:
        why = "it is nested too deeply"
    except ValueError as error:
        why = str(error)
    raise InputError(f"this is not JSON: {why}", where=where, fix=_FIX)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for index, key in enumerate(keys) if key in keys[:index])
        raise ValueError(f"the key {name(twice)!r} appears twice in one object")
    return found
