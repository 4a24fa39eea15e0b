"""Which code a measuring process has loaded: so that two interpreters are not compared that run the same."""

from __future__ import annotations

import hashlib
import importlib.metadata
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_OURS = "speechmeter"
_COMPUTING = ("speechmeter.transducer", "speechmeter.subjects")
"""Parts of this package that are measured; the rest of it measures, and may be another version on the other side."""
_MAIN = "__main__"
_LARGE_BYTES = 16 * 2**20
"""A library above this is told by its size: one of half a gigabyte would take longer to read than to measure."""


def loaded_code() -> dict[str, Any]:
    """What was imported beyond the standard library: a digest of all files, where the modules came from, versions.

    `modules` are those outside installed packages, each with `working folder` or `elsewhere`. Paths are not told.
    """
    files = dict(_files())
    outside = {name.partition(".")[0]: path for name, path in files.items() if not _is_installed(path)}
    return {
        "digest": _digest(files),
        "modules": {name: _origin(path) for name, path in sorted(outside.items())},
        "versions": _versions({name.partition(".")[0] for name in files}),
    }


def _files() -> Iterator[tuple[str, Path]]:
    """(module, file) of what is neither the standard library nor the measuring part of this package."""
    standard = [Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")]
    for name, module in sorted(sys.modules.items()):
        own = name == _OURS or name.startswith(f"{_OURS}.")
        path = getattr(module, "__file__", None)
        if not isinstance(path, str) or name == _MAIN or (own and not name.startswith(_COMPUTING)):
            continue
        if not Path(path).is_absolute():  # of modules that are made up, such as `torch.ops`: there is no such file
            continue
        file = Path(path).resolve()
        if _is_installed(file) or not any(file.is_relative_to(folder) for folder in standard):
            yield name, file


def _is_installed(path: Path) -> bool:
    return any(part in ("site-packages", "dist-packages") for part in path.parts)


def _origin(path: Path) -> str:
    return "working folder" if path.is_relative_to(Path.cwd()) else "elsewhere"


def _digest(files: dict[str, Path]) -> str:
    """Of the content of all files under the names of their modules, wherever they are."""
    whole = hashlib.sha256()
    contents = {path: _content(path) for path in set(files.values())}  # a library may hold many modules
    for name, path in files.items():
        whole.update(f"{name}\0{contents[path]}\n".encode())
    return whole.hexdigest()[:16]


def _content(path: Path) -> str:
    try:
        size = path.stat().st_size
        return f"{size} bytes" if size > _LARGE_BYTES else hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return "unreadable"


def _versions(packages: set[str]) -> dict[str, str]:
    """The version of every distribution that holds one of these packages."""
    owners = importlib.metadata.packages_distributions()
    names = sorted({owner for package in packages for owner in owners.get(package, ())} - {_OURS})
    return {name: importlib.metadata.version(name) for name in names}
