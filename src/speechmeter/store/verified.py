"""Whether DuckDB may read a file of records directly: only if every line passes every check of ours.

DuckDB accepts numbers in quotes, commas at the end of a list, and any `id` that a line holds, so a query may let it
read only what `RunDir.records` would give unchanged. The check parses each line, which takes several times as long as
DuckDB: 16 s for 100,000 records (418 MB) that DuckDB reads in 1 s. So the answer is remembered for large files, in the
user's cache, for as long as neither the file nor the code of the check changes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from pathlib import Path
from typing import BinaryIO

from speechmeter.core import types
from speechmeter.store import lines, schema
from speechmeter.store.columns import LINE, OPTIONAL

_LARGE = 8 * 2**20  # bytes; a smaller file is checked in 0.3 s, and nothing is written for it
# Two writes within one tick of the clock leave the same times, so a file that was changed just now is not remembered.
_SETTLED_NS = 2 * 10**9


def is_verified(file: BinaryIO) -> bool:
    """Whether every line is whole, of the current schema, of printable text, and passes `check_record`."""
    stat = os.fstat(file.fileno())
    large = stat.st_size >= _LARGE
    if large and _remembered(stat):
        return True
    found = all(_as_given(line) for _, line in lines.whole_lines(file))
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 1))
    found = found and file.read(1) in (b"", b"\n")  # a torn last line is not left to another parser
    unchanged = _state(os.fstat(file.fileno())) == _state(stat)
    if found and unchanged and large and time.time_ns() - stat.st_ctime_ns > _SETTLED_NS:
        with contextlib.suppress(OSError, RuntimeError):  # a home that cannot be written: the next query checks again
            entry = _entry(stat)
            entry.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            entry.touch()
    return found and unchanged


def _as_given(line: bytes) -> bool:
    """Whether `RunDir.records` gives the line unchanged."""
    if lines.may_steer(line):
        return False
    try:
        data = lines.parsed(line)
        if type(data) is not dict or data.get("schema") != types.SCHEMA or not LINE.keys() - OPTIONAL <= data.keys():
            return False
        schema.check_record(data)
        return bool(types.Case.from_json(data["case"]).id == data["id"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return False


def _state(stat: os.stat_result) -> tuple[int, ...]:
    # the time of change is set by the kernel: whoever writes the file cannot choose it
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def _entry(stat: os.stat_result) -> Path:
    """The marker file in the cache for this content and this code of the check."""
    home = os.environ.get("XDG_CACHE_HOME")
    rules = hashlib.sha256()
    for module in (lines, schema, types):
        rules.update(Path(str(module.__file__)).read_bytes())
    key = hashlib.sha256(json.dumps([_state(stat), rules.hexdigest()]).encode()).hexdigest()
    return (Path(home) if home else Path.home() / ".cache") / "speechmeter" / "checked" / key


def _remembered(stat: os.stat_result) -> bool:
    with contextlib.suppress(OSError, RuntimeError):  # no home
        return _entry(stat).is_file()
    return False
