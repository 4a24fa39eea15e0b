"""Which tool wrote a file: told from its content, never from its name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from speechmeter.core.errors import InputError
from speechmeter.core.files import MIB, opened, read_bytes
from speechmeter.store.foreign import aiperf, guidellm, stt_benchmark, vllm_bench
from speechmeter.store.foreign.found import Found

FORMATS = "vllm bench serve, guidellm and aiperf (JSON), and stt-benchmark (SQLite)"
_LARGEST = 256 * MIB
_FIX = f"import reads results of {FORMATS}"


def read(path: Path) -> Found:
    """What a file holds. Raises InputError for a file that no reader knows, or that is damaged."""
    try:
        with opened(path, None) as file:
            head = file.read(len(stt_benchmark.MAGIC))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path), fix="name a file that exists") from error
    if head == stt_benchmark.MAGIC:
        return stt_benchmark.read(path)
    found = list(_objects(path))
    if found and all(map(vllm_bench.is_ours, found)):
        return vllm_bench.read(found, path.name)
    if found and aiperf.is_record(found[0]):
        raise InputError(
            "this file has single requests of aiperf and no summary",
            where=str(path), fix="import the profile_export_aiperf.json in the same folder",
        )  # fmt: skip
    if len(found) == 1:
        if guidellm.is_ours(found[0]):
            return guidellm.read(found[0], path.name)
        if aiperf.is_ours(found[0]):
            return aiperf.read(found[0], path.name)
    raise InputError("the format is unknown", where=str(path), fix=_FIX)


def _objects(path: Path) -> Iterator[Any]:
    """The JSON values of a file: one, or one a line."""
    try:
        text = read_bytes(path, _LARGEST).decode("utf-8-sig")
        try:
            yield json.loads(text)
        except json.JSONDecodeError:
            lines = [line for line in text.splitlines() if line.strip()]
            if len(lines) < 2:
                raise
            yield from map(json.loads, lines)
    except (ValueError, RecursionError) as error:
        raise InputError(f"this is not JSON: {error}", where=str(path), fix=_FIX) from error
