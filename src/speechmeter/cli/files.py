"""Files that a command writes: never over another without being told, and never by halves."""

from __future__ import annotations

from pathlib import Path

from speechmeter.core.errors import InputError


def check_free(path: Path, *, force: bool) -> None:
    """Raise InputError where something stands already, unless it may be replaced, or no file can stand."""
    if path.is_dir():
        raise InputError(f"{path} is a directory", where="-o", fix="name a file in it")
    if path.exists() and not force:
        raise InputError(f"{path} is there already", where="-o", fix="add --force, or choose another name")
    if not path.parent.is_dir():
        raise InputError(f"there is no directory {path.parent}", where="-o", fix="make it, or choose another name")


def write_whole(path: Path, content: bytes) -> None:
    """Write a file at once: what stood there before stays until the new one is complete."""
    fresh = path.with_name(f".{path.name}.new")
    try:
        fresh.write_bytes(content)
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise InputError(
            f"{path} cannot be written: {error.strerror}", where="-o", fix="choose another name"
        ) from error
