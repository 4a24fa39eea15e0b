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
    """Copy the entries of `source` into `target`; what was left out, a line each.

    `names` are those that an entry has in `target`, where it does not keep its own. What finds its name taken by
    something else gets that of its run behind it.
    """
    if source.is_symlink():
        return [f"{source}: a link is not followed"]
    left_out: list[str] = []
    for entry in sorted(source.iterdir()) if source.is_dir() else ():
        files = list(_files(entry, left_out))
        for name in names.get(entry.name, (entry.name,)):
            free = own_name(name, run) if _differs(entry, target / name, files) else name
            for file in files:
                place = target / free / file.relative_to(entry)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, place, follow_symlinks=False)
    return left_out


def artifacts_of(folder: Path, record: Record) -> Path:
    """The folder of what a record's case left besides numbers; in merged runs that of its own host."""
    case_id = as_stored(record.case).id
    own = folder / own_name(case_id, record.host)
    return own if own.is_dir() else folder / case_id


def artifact(folder: Path, record: Record, name: str) -> Path | None:
    """A file that a record's case left, in the run's own folder; None when it is absent or a link leads to it."""
    path = artifacts_of(folder, record) / name
    run = folder.parent
    inside = path.resolve() == run.resolve() / path.relative_to(run)
    return path if inside and path.is_file() else None


def _files(entry: Path, left_out: list[str]) -> Iterator[Path]:
    """Plain files at and below an entry; links and what else is no file are named."""
    if entry.is_symlink():
        left_out.append(f"{entry}: a link is not followed")
    elif entry.is_dir():
        for child in sorted(entry.iterdir()):
            yield from _files(child, left_out)
    elif entry.is_file():
        yield entry
    else:
        left_out.append(f"{entry}: not a plain file")


def _differs(entry: Path, taken: Path, files: list[Path]) -> bool:
    """Whether something else stands under this name already."""
    if not taken.exists():
        return False
    places = [(file, taken / file.relative_to(entry)) for file in files]
    return not all(place.is_file() and filecmp.cmp(file, place, shallow=False) for file, place in places)


def own_name(name: str, host: str) -> str:
    """The name of what is a host's own: `<case id>-<host>`."""
    stem, dot, rest = name.partition(".")
    return f"{stem}-{re.sub(r'[^A-Za-z0-9_-]+', '-', host).strip('-')[:80] or 'unnamed'}{dot}{rest}"
