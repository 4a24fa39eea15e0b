"""wav2vec's and fairseq's TSV: the root on line 1, then `path<TAB>samples`; texts in a file of the same stem."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

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
    texts, ids = _texts(path), _companion(path.with_suffix(IDS))
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
    for suffix, clean in _TEXTS.items():
        companion = path.with_suffix(suffix)
        if companion.is_file():
            return (clean(line) if line is not None else None for line in _companion(companion))
    return iter(())


def _companion(path: Path) -> Iterator[str | None]:
    return (line for _, line in numbered_lines(path)) if path.is_file() else iter(())
