"""Text for translation and synthesis alone: lines of a file, the shipped transcript, or random token ids."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, islice, zip_longest
from pathlib import Path
from typing import Any

from speechmeter.core.axes import Axis, Option
from speechmeter.core.bounded import MIB, read_text
from speechmeter.core.errors import InputError
from speechmeter.core.finding import check_enough
from speechmeter.core.protocols import TEXT, Fed
from speechmeter.core.types import Batch, Case
from speechmeter.workloads.audio import sample_transcript
from speechmeter.workloads.manifests import sample_list
from speechmeter.workloads.manifests.utterance import Refused

_LARGEST_FILE = 256 * MIB
_IDS_LENGTH = 32
_FIRST_ID = 4
"""Ids below this are special in most vocabularies: padding, start, end, unknown."""


class TextWorkload:
    """Batches of lines, or of token ids with `vocabulary`; as long as they are, or `length` words or ids each.

    Options: `lines`, a text file, an item a line; `references`, a text file with what each line should become; `ids`,
    a `.npy` list of token ids; `vocabulary`, for random ids below it; `count`, how many items.
    """

    axes = (
        Axis(name="length", kind=int, default=None, help="words, or ids, in each item; absent: as they are", minimum=1),
        Axis(name="batch", kind=int, default=1, help="items in a call", minimum=1),
    )
    options = (
        Option(name="lines"),
        Option(name="references"),
        Option(name="ids"),
        Option(name="vocabulary"),
        Option(name="count"),
    )

    def check(self, case: Case) -> None:
        """A file must be there and hold text; numbers must be such."""
        options = case.workload.options
        for name, least in (("vocabulary", _FIRST_ID + 1), ("count", 1)):
            value = options.get(name, least)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise InputError(f"text: {name} takes a whole number from {least} on, not {value!r}", where="text")
        sources = [name for name in ("lines", "ids", "vocabulary") if name in options]
        if len(sources) > 1:
            both = " and ".join(sources)
            raise InputError(f"text: {both} exclude each other", where="text", fix="keep one of them")
        if "lines" in options and not _lines(options["lines"]):
            raise InputError(f"text {options['lines']!r} holds no line", where="text", fix="name a text file")
        if "references" in options:
            _check_references(options, case.axes.get("length"))
        if {"count", "lines", "ids"} & set(options):
            check_enough(case, len(_items(case)))

    def feeds(self, case: Case) -> Fed:
        """Text."""
        return Fed(kinds=(TEXT,))

    def batches(self, case: Case) -> Iterator[Batch]:
        """All items, `batch` of them at a time; the last batch may be smaller."""
        items, references = _items(case), _references(case)
        size = int(case.axes["batch"])
        for start in range(0, len(items), size):
            part = items[start : start + size]
            yield Batch(
                data=tuple(part),
                items=len(part),
                ids=tuple(f"text-{start + index}" for index in range(len(part))),
                lengths=tuple(len(item.split()) if isinstance(item, str) else len(item) for item in part),
                references=references[start : start + size],
            )


def _items(case: Case) -> Sequence[str | tuple[int, ...]]:
    options, length = case.workload.options, case.axes.get("length")
    if "vocabulary" in options:
        return _random_ids(options, int(length or _IDS_LENGTH), case)
    if "ids" in options:
        rows = _listed_ids(Path(str(options["ids"])))[: options.get("count")]
        return [tuple(islice(cycle(row), length)) for row in rows] if length else rows
    lines = _lines(options["lines"]) if "lines" in options else [sample_transcript()]
    count = options.get("count", len(lines) if "lines" in options else int(case.axes["batch"]))
    chosen = list(islice(cycle(lines), count))
    return [" ".join(islice(cycle(line.split()), length)) for line in chosen] if length else chosen


def _references(case: Case) -> tuple[str, ...]:
    """What each item should become, in the order of the items; nothing where no file says so."""
    options = case.workload.options
    if "references" not in options:
        return ()
    lines = _lines(options["references"])
    return tuple(islice(cycle(lines), int(options.get("count", len(lines)))))


def _check_references(options: Mapping[str, Any], length: int | None) -> None:
    """A reference must stand in the line of its item, so the two files have their empty lines in the same places."""
    if "lines" not in options:
        raise InputError("text: references need lines that they are of", where="text", fix="add lines: FILE")
    if length is not None:
        raise InputError("text: length changes the lines, so references do not fit", where="text", fix="drop length")
    if int(options.get("count", 0)) > len(_lines(options["lines"])):
        raise InputError("text: a line that is repeated is scored twice", where="text", fix="lower count, or drop it")
    lines, references = ([bool(line.strip()) for line in _raw(options[key])] for key in ("lines", "references"))
    for number, (line, reference) in enumerate(zip_longest(lines, references, fillvalue=False), start=1):
        if line is not reference:
            lacking = "references" if line else "lines"
            raise InputError(
                f"text: line {number} of {options[lacking]!r} is missing or empty, that of the other file is not",
                where="text",
                fix="give lines and references line by line",
            )


def _random_ids(options: Mapping[str, Any], length: int, case: Case) -> Sequence[tuple[int, ...]]:
    draw = random.Random(case.protocol.seed)
    count = int(options.get("count", case.axes["batch"]))
    return [tuple(draw.randrange(_FIRST_ID, options["vocabulary"]) for _ in range(length)) for _ in range(count)]


def _listed_ids(path: Path) -> list[tuple[int, ...]]:
    """The token ids of every item of a `.npy` list, (1, tokens) or (tokens,). Raises InputError for anything else."""
    rows: list[tuple[int, ...]] = []
    if not path.is_file():
        raise InputError(f"text: {str(path)!r} does not exist", where="text", fix="name a .npy list")
    for item in sample_list.read(path, None):
        try:
            if isinstance(item, Refused):
                raise ValueError(item.reason)
            data = item.array.numpy()
            if data.dtype.kind not in "iu" or data.ndim > 2 or (data.ndim == 2 and len(data) != 1) or not data.size:
                raise ValueError(f"holds {data.dtype} of the shape {data.shape}, not token ids (1, tokens)")
        except (ValueError, TypeError, MemoryError) as error:
            what = f"text: {item.id} of {path.name!r} {error}"
            raise InputError(what, where="text", fix="feed sound and features with `data:`") from error
        rows.append(tuple(data.reshape(-1).tolist()))
    if not rows:
        raise InputError(f"text: {str(path)!r} lists nothing", where="text", fix="name a .npy list with items")
    return rows


def _lines(path: Any) -> list[str]:
    return [line.strip() for line in _raw(path) if line.strip()]


def _raw(path: Any) -> list[str]:
    try:
        text = read_text(Path(str(path)), _LARGEST_FILE)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"text {path!r} cannot be read: {error}", where="text", fix="name a text file") from error
    return text.splitlines()
