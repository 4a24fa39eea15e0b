"""Plans and examples that come with the package, and a copy of them in a folder of the user's."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import speechmeter
from speechmeter.core.errors import InputError
from speechmeter.core.files import whole_file

FOLDERS = ("plans", "examples")
_PACKAGE = Path(speechmeter.__file__).parent


@dataclass(frozen=True, kw_only=True)
class Copied:
    """What was copied: the names of plans and of example runs."""

    plans: tuple[str, ...]
    runs: tuple[str, ...]


def copy_shipped(folder: Path, *, force: bool = False) -> Copied:
    """Copy the plans and examples into a folder, as `plans` and `examples`. It is made if it does not exist.

    Raises InputError where a file of theirs is there already, unless `force` replaces it. Nothing is written then.
    """
    shipped = _shipped()
    sources = [path for name in FOLDERS for path in sorted((shipped / name).rglob("*")) if _belongs(path)]
    targets = [folder / path.relative_to(shipped) for path in sources]
    if folder.exists() and not folder.is_dir():
        raise InputError("this is a file, not a folder", where=str(folder), fix="use another name")
    taken = [path for path in targets if os.path.lexists(path)]
    if taken and not force:
        more = f", and {len(taken) - 1} more of the files to write" if len(taken) > 1 else ""
        raise InputError(
            f"this file already exists{more}", where=str(taken[0]), fix="use another folder, or `force` to replace them"
        )
    for source, target in zip(sources, targets, strict=True):
        target.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(target) as draft:  # a link that is there is replaced, not written through
            shutil.copyfile(source, draft)
    return Copied(
        plans=tuple(path.name for path in sorted((shipped / "plans").glob("*.yaml"))),
        runs=tuple(path.parent.name for path in sorted((shipped / "examples/runs").glob("*/records.jsonl"))),
    )


def _shipped() -> Path:
    """Where they are: inside an installed package, or in the repository that this package is run from."""
    packed = _PACKAGE / "shipped"
    return packed if packed.is_dir() else _PACKAGE.parents[1]


def _belongs(path: Path) -> bool:
    return path.is_file() and not any(part.startswith((".", "__")) for part in path.relative_to(_shipped()).parts)
