"""Files that a user asked for: no other file is replaced unless that was asked for, and none is left half-written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from speechmeter.core.drafts import whole_file
from speechmeter.core.errors import InputError

_ELSEWHERE = "make it writable and make room, or choose another place"


def check_free(path: Path, *, force: bool, makes_folder: bool = False) -> None:
    """Raise InputError where a file exists and may not be replaced, or where none can be written.

    Checked before any work is done, as far as that can be known. With `makes_folder` a missing folder is made later.
    """
    with written_by_user(path):
        if path.is_dir():
            raise InputError(f"{path} is a directory", key="output", fix="name a file in it")
        if path.exists() and not force:
            raise InputError(f"{path} is there already", key="output", fix="add `force`, or choose another name")
        folder = path.absolute().parent
        if makes_folder:
            folder = next(above for above in (folder, *folder.parents) if above.exists())
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file, not a directory", key="output", fix="choose another name")
        if not folder.exists():
            raise InputError(
                f"there is no directory {path.parent}", key="output", fix="make it, or choose another name"
            )
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InputError(f"{folder} is not writable", key="output", fix=_ELSEWHERE)


@contextmanager
def written_by_user(path: Path) -> Iterator[None]:
    """Inside, what the disk refuses (OSError) is bad input: InputError, which names the file and the way out."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{path} cannot be written: {error.strerror or error}", key="output", fix=_ELSEWHERE
        ) from error


def write_whole(path: Path, content: bytes) -> None:
    """Write a file at once, and its folder where that is missing. Raises OSError as `whole_file` does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as draft:
        draft.write_bytes(content)
