"""Exchange files: what was said and heard in one round of a live case, one conversation a line, readable without us.

A file is gzipped JSON lines: `Conditions`, then one `Exchange` a line; where a recogniser heard the sound of a system,
a last line `{"heard": […]}` has what it understood of each. Each line is a gzip member of its own and is
handed to the kernel when its conversation ends, so that whatever kills the process, finished conversations are kept.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, BinaryIO

from speechmeter.core.errors import InputError, StoreError
from speechmeter.core.files import MIB, opened
from speechmeter.core.live import EXCHANGES, EXCHANGES_VERSION, Conditions, Exchange

LARGEST_FILE = 2048 * MIB
"""Unpacked. An hour of 20 ms chunks has some 10 MB."""


SUFFIX = ".jsonl.gz"
_HEARD = "heard"


def exchange_file(round_: int) -> str:
    """The name of the file of a round, in the folder of its case."""
    return f"exchanges-{round_}{SUFFIX}"


class ExchangeWriter:
    """Appends exchanges to a new file. A thread packs and writes, so that the caller, who keeps time, does not.

    A file that is there already is from a round that did not finish: it is kept under another name.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: SimpleQueue[Mapping[str, Any] | Exchange | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._failed: OSError | None = None

    def begin(self, conditions: Conditions) -> None:
        """Open the file and write its first line. Raises OSError where it cannot be written."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if self._path.exists():
            self._path.rename(_free(self._path))
        file = self._path.open("xb", buffering=0)
        self._thread = Thread(target=self._write, args=(file,), name="exchanges", daemon=True)
        self._thread.start()
        self._lines.put(conditions.to_json())

    def take(self, exchange: Exchange) -> None:
        """Write an exchange soon. Raises OSError where an earlier one could not be written."""
        if self._failed is not None:
            raise self._failed
        self._lines.put(exchange)

    def hear(self, heard: Sequence[str | None]) -> None:
        """Write what a recogniser understood of each exchange so far. Raises OSError as `take` does."""
        if self._failed is not None:
            raise self._failed
        self._lines.put({_HEARD: list(heard)})

    def close(self) -> None:
        """Wait until all is written. Raises OSError where something could not be."""
        if self._thread is not None:
            self._lines.put(None)
            self._thread.join()
            self._thread = None
        if self._failed is not None:
            raise self._failed

    def _write(self, file: BinaryIO) -> None:
        with file:
            while (item := self._lines.get()) is not None:
                try:
                    data = item.to_json() if isinstance(item, Exchange) else item
                    file.write(_packed(data))
                except OSError as error:  # a full disk
                    self._failed = error
                    return


def _packed(data: Mapping[str, Any]) -> bytes:
    line = json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n"
    return gzip.compress(line.encode(errors="replace"), compresslevel=6, mtime=0)


def _free(path: Path) -> Path:
    stem = path.name.removesuffix(SUFFIX)
    return next(
        other for number in count(1) if not (other := path.parent / f"{stem}-unfinished-{number}{SUFFIX}").exists()
    )


@dataclass(frozen=True, kw_only=True)
class ExchangeLog:
    """What an exchange file holds. `torn` says that it ends in the middle of a line, which is left out."""

    conditions: Conditions
    exchanges: tuple[Exchange, ...]
    torn: bool = False


def read_exchanges(path: Path) -> ExchangeLog:
    """The exchanges of a file. Raises StoreError where it cannot be read, and for one of a newer version."""
    lines: list[bytes] = []
    torn = False
    try:
        with opened(path, LARGEST_FILE) as file:
            lines.extend(file)  # where reading on fails, the lines before are kept
    except InputError:
        torn = True
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error
    if lines and not lines[-1].endswith(b"\n"):
        torn = bool(lines.pop())
    try:
        data = [json.loads(line) for line in lines]
        head, *rest = data or [{}]
        if head.get("format") != EXCHANGES:
            raise ValueError("it does not begin with the conditions of a round")
        if head["version"] > EXCHANGES_VERSION:
            raise StoreError(f"{path}: written by a newer Speechmeter (format {head['version']}); update Speechmeter")
        return ExchangeLog(conditions=Conditions.from_json(head), exchanges=_exchanges(rest), torn=torn)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StoreError(f"{path}: this is not an exchange file: {error}") from error


def _exchanges(lines: Sequence[Mapping[str, Any]]) -> tuple[Exchange, ...]:
    """The exchanges of these lines, with what was heard of them where the last line has it."""
    heard: Sequence[str | None] = []
    if lines and set(lines[-1]) == {_HEARD}:
        heard, lines = lines[-1][_HEARD], lines[:-1]
    found = tuple(map(Exchange.from_json, lines))
    if heard and len(heard) != len(found):
        raise ValueError(f"it has {len(found)} conversations, but {len(heard)} transcripts")
    return tuple(replace(one, heard=text) for one, text in zip(found, heard, strict=True)) if heard else found
