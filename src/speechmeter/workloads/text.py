"""Text for translation and synthesis alone: lines of a file, the shipped transcript, or random token ids."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, islice, zip_longest
from pathlib import Path
from typing import Any

from speechmeter.core.axes import BATCH, Axis, Option
from speechmeter.core.errors import InputError
from speechmeter.core.files import MIB, read_text
from speechmeter.core.finding import check_enough
from speechmeter.core.protocols import TEXT, Fed
from speechmeter.core.types import Batch, Case
from speechmeter.workloads.audio import sample_transcript
from speechmeter.workloads.manifests import pickled
from speechmeter.workloads.manifests.utterance import Refused

_LARGEST_FILE = 256 * MIB
_IDS_LENGTH = 32
_FIRST_ID = 4
"""Ids below this are special in most vocabularies: padding, start, end, unknown."""


class TextWorkload:
    """Batches of lines, or of token ids with `vocabulary`; each at its own length, or `length` words or ids long."""

    axes = (
        Axis(
            name="length",
            kind=int,
            default=None,
            help="length of each item in words or ids (default: unchanged)",
            minimum=1,
        ),
        BATCH,
    )
    options = (
        Option(name="lines", kind=Path, help="a text file with one item per line"),
        Option(name="references", kind=Path, help="a text file with the expected output of each line"),
        Option(name="ids", kind=Path, help="a .npy list of token ids"),
        Option(name="vocabulary", kind=int, minimum=_FIRST_ID + 1, help="number of ids, for random token ids"),
        Option(name="count", kind=int, minimum=1, help="number of items"),
    )

    def check(self, case: Case) -> None:
        """A file must exist and hold text, and references must fit the lines."""
        options = case.workload.options
        sources = [name for name in ("lines", "ids", "vocabulary") if name in options]
        if len(sources) > 1:
            raise InputError(f"{' and '.join(sources)} cannot be combined", key="text", fix="keep one of them")
        if "lines" in options and not _lines(options["lines"]):
            raise InputError(f"{str(options['lines'])!r} is empty", key="text", fix="use a file with text")
        if "references" in options:
            _check_references(options, case.axes.get("length"))
        if {"count", "lines", "ids"} & set(options):
            check_enough(case, len(_items(case)))

    def feeds(self, case: Case) -> Fed:
        """Text."""
        return Fed(kinds=(TEXT,))

    def batches(self, case: Case) -> Iterator[Batch]:
        """All items, `batch` of them at a time; the last batch may be smaller."""
        options, items, size = case.workload.options, _items(case), int(case.axes["batch"])
        references: tuple[str, ...] = ()
        if "references" in options:
            lines = _lines(options["references"])
            references = tuple(islice(cycle(lines), int(options.get("count", len(lines)))))
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
    options, length, batch = case.workload.options, case.axes.get("length"), int(case.axes["batch"])
    if "vocabulary" in options:
        draw, count = random.Random(case.protocol.seed), int(options.get("count", batch))
        ids = range(_FIRST_ID, options["vocabulary"])
        return [tuple(draw.randrange(ids.start, ids.stop) for _ in range(length or _IDS_LENGTH)) for _ in range(count)]
    if "ids" in options:
        rows = _listed_ids(Path(str(options["ids"])))[: options.get("count")]
        return [tuple(islice(cycle(row), length)) for row in rows] if length else rows
    lines = _lines(options["lines"]) if "lines" in options else [sample_transcript()]
    count = options.get("count", len(lines) if "lines" in options else batch)
    chosen = list(islice(cycle(lines), count))
    return [" ".join(islice(cycle(line.split()), length)) for line in chosen] if length else chosen


def _check_references(options: Mapping[str, Any], length: int | None) -> None:
    """A reference must be in the line of its item, so both files must have their empty lines at the same numbers."""
    if "lines" not in options:
        raise InputError("`references` needs `lines`", key="text", fix="add the text file as `lines`")
    if length is not None:
        raise InputError(
            "`length` changes the lines, so it cannot be combined with `references`",
            key="text",
            fix="leave out `length`",
        )
    if int(options.get("count", 0)) > len(_lines(options["lines"])):
        raise InputError(
            "`count` is larger than the number of lines, so some lines would be scored twice",
            key="text",
            fix="lower count",
        )
    lines, references = ([bool(line.strip()) for line in _raw(options[key])] for key in ("lines", "references"))
    for number, (line, reference) in enumerate(zip_longest(lines, references, fillvalue=False), start=1):
        if line is not reference:
            lacking = "references" if line else "lines"
            raise InputError(
                f"line {number} of {str(options[lacking])!r} is missing or empty, but the other file has text there",
                key="text",
                fix="write the reference of each line into the same line of the other file",
            )


def _listed_ids(path: Path) -> list[tuple[int, ...]]:
    """The token ids of every item of a `.npy` list, (1, tokens) or (tokens,). Raises InputError for anything else."""
    rows: list[tuple[int, ...]] = []
    if not path.is_file():
        raise InputError(f"{str(path)!r} does not exist", key="text", fix="use a .npy list")
    for item in pickled.read(path, None):
        try:
            if isinstance(item, Refused):
                raise ValueError(item.reason)
            data = item.array.numpy()
            if data.dtype.kind not in "iu" or data.ndim > 2 or (data.ndim == 2 and len(data) != 1) or not data.size:
                raise ValueError(f"holds {data.dtype} of the shape {data.shape}, not token ids (1, tokens)")
        except (ValueError, TypeError, MemoryError) as error:
            raise InputError(
                f"{item.id} of {path.name!r} {error}", key="text", fix="feed sound and features with `data:`"
            ) from error
        rows.append(tuple(data.reshape(-1).tolist()))
    if not rows:
        raise InputError(f"{str(path)!r} has no items", key="text", fix="use a .npy list that is not empty")
    return rows


def _lines(path: Any) -> list[str]:
    return [line.strip() for line in _raw(path) if line.strip()]


def _raw(path: Any) -> list[str]:
    try:
        text = read_text(Path(str(path)), _LARGEST_FILE)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InputError(f"{str(path)!r} cannot be read: {reason}", key="text", fix="use a text file") from error
    return text.splitlines()
