"""Artifacts of one run copied into another: plain files only, never through a link, never out of the directory."""

from __future__ import annotations

import filecmp
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from speechmeter.core.hosts import as_stored
from speechmeter.core.types import Record


def copy_artifacts(source: Path, target: Path, names: Mapping[str, Iterable[str]], run: str) -> list[str]:
    """Copy the entries of `source` into `target`. Returns a line for each entry that was left out.

    `names` has the names of an entry in `target` where it does not keep its own. Where another entry has the name
    already, the name of the run is appended.
    """
    if source.is_symlink():
        return [f"{source}: not copied, because it is a symbolic link"]
    left_out: list[str] = []
    for entry in sorted(source.iterdir()) if source.is_dir() else ():
        files = list(_files(entry, left_out))
        for name in names.get(entry.name, (entry.name,)):
            free = own_name(name, run) if _differs(entry, target / name, files) else name
            for file in files:
                copy = target / free / file.relative_to(entry)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy, follow_symlinks=False)
    return left_out


def artifacts_of(folder: Path, record: Record) -> Path:
    """The folder with the files of a record's case; in merged runs the one of its own host."""
    case_id = as_stored(record.case).id
    own = folder / own_name(case_id, record.host)
    return own if own.is_dir() else folder / case_id


def artifact(folder: Path, record: Record, name: str) -> Path | None:
    """A file of a record's case, in the run's own folder; None when it is absent or a link leads to it."""
    path = artifacts_of(folder, record) / name
    run = folder.parent
    inside = path.resolve() == run.resolve() / path.relative_to(run)
    return path if inside and path.is_file() else None


def _files(entry: Path, left_out: list[str]) -> Iterator[Path]:
    """Plain files at and below an entry; links and other things are listed as left out."""
    if entry.is_symlink():
        left_out.append(f"{entry}: not copied, because it is a symbolic link")
    elif entry.is_dir():
        for child in sorted(entry.iterdir()):
            yield from _files(child, left_out)
    elif entry.is_file():
        yield entry
    else:
        left_out.append(f"{entry}: not copied, because it is not a regular file")


def _differs(entry: Path, taken: Path, files: list[Path]) -> bool:
    """Whether other files have this name already."""
    if not taken.exists():
        return False
    pairs = [(file, taken / file.relative_to(entry)) for file in files]
    return not all(other.is_file() and filecmp.cmp(file, other, shallow=False) for file, other in pairs)


def own_name(name: str, host: str) -> str:
    """The name of an artifact that belongs to one host: `<case id>-<host>`."""
    stem, dot, rest = name.partition(".")
    return f"{stem}-{re.sub(r'[^A-Za-z0-9_-]+', '-', host).strip('-')[:80] or 'unnamed'}{dot}{rest}"
