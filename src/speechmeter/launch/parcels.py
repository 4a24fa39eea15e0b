"""Files that a measurement left on another machine, as bytes that travel; unpacked below one folder, never outside."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

MOST_BYTES = 64 * 2**20
"""What one measurement may send back besides its figures."""


def pack(folder: Path, most_bytes: int = MOST_BYTES) -> tuple[dict[str, bytes], list[str]]:
    """The plain files below a folder by their names in it, small ones first, and what was left out, a line each."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    packed: dict[str, bytes] = {}
    left_out, room = [], most_bytes
    for path in sorted(files, key=lambda path: (path.stat().st_size, path)):
        name, size = path.relative_to(folder).as_posix(), path.stat().st_size
        if size > room:
            left_out.append(
                f"{name} ({size / 2**20:.0f} MiB) stayed behind: at most {most_bytes / 2**20:.0f} MiB travel"
            )
            continue
        packed[name] = path.read_bytes()
        room -= size
    return packed, left_out


def unpack(packed: Mapping[str, bytes], folder: Path) -> list[str]:
    """Write the files below a folder; those whose names or links lead out of it are refused and named."""
    refused = []
    for name, content in packed.items():
        target = folder / name
        if not _is_inside(name, target, folder):
            refused.append(f"{name!r} would be written outside of the run: refused")
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return refused


def _is_inside(name: str, target: Path, folder: Path) -> bool:
    pure = PurePosixPath(name)
    plain = bool(pure.parts) and not pure.is_absolute() and "\0" not in name
    return plain and target.resolve() == folder.resolve() / pure
