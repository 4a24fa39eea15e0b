"""wav2vec's and fairseq's TSV: the root on line 1, then `path<TAB>samples`; texts in a file of the same stem."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from speechmeter.core.errors import InputError
from speechmeter.workloads.manifests.lines import numbered_lines
from speechmeter.workloads.manifests.utterance import Refused, Utterance, whole, without_suffix

IDS = ".ids"
"""Beside the list, an id a line, where ids are not the paths without their endings."""


def _letters(line: str) -> str:
    """`H E | I T` as `HE IT`."""
    return " ".join(line.replace(" ", "").replace("|", " ").split())


_TEXTS: dict[str, Callable[[str], str]] = {".wrd": str.strip, ".txt": str.strip, ".ltr": _letters}


def read(path: Path, root: Path | None) -> Iterator[Utterance | Refused]:
    """An utterance a line; a line without a whole number of samples is refused."""
    lines = numbered_lines(path)
    _, first = next(lines, (0, ""))
    folder, above = str(path.parent), str(root.absolute()) if root is not None else (first or "").strip()
    texts, ids = _texts(path), _companion(path, IDS)
    for number, line in lines:
        if line is not None and not line.strip():
            continue
        text, name = next(texts, None), next(ids, None)
        if line is None:
            yield Refused(id=f"line {number}", reason="the line is too long or not UTF-8")
            continue
        relative, tab, samples = line.partition("\t")
        try:
            frames = whole({"samples": samples.strip()}, "samples")
        except ValueError:
            frames = None
        if not tab or frames is None:
            yield Refused(id=f"line {number}", reason="not `path<TAB>samples`")
            continue
        plain = relative.strip()
        identity = name or without_suffix(plain)
        yield Utterance(id=identity, path=f"{above}/{plain}", folder=folder, frames=frames, text=text)


def _texts(path: Path) -> Iterator[str | None]:
    """The text of each item; an empty line is that of an item without one."""
    for suffix, clean in _TEXTS.items():
        if path.with_suffix(suffix).is_file():
            return (clean(line) or None if line is not None else None for line in _companion(path, suffix))
    return iter(())


def _companion(path: Path, suffix: str) -> Iterator[str | None]:
    """The lines of the file beside a list. Raises InputError where they are not one for each item."""
    beside = path.with_suffix(suffix)
    if not beside.is_file():
        return iter(())
    items = sum(line is None or bool(line.strip()) for _, line in islice(numbered_lines(path), 1, None))
    lines = written = 0
    for lines, line in numbered_lines(beside):
        written = lines if line is None or line.strip() else written
    if lines < items or written > items:
        raise InputError(
            f"{items} items in {path.name}, {_lines(lines)} in {beside.name}: it is not known which belongs to which",
            where="data",
            fix=f"mend {beside.name}, or move it away",
        )
    return (line for _, line in numbered_lines(beside))


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"
