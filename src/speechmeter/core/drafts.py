"""Files and folders that are written whole or not at all: beside their place, under a name that nobody could foresee.

A process that is killed leaves its draft. Each draft is locked for as long as its process lives, and whoever makes the
next one in the same folder removes those that nobody holds. The lock is the kernel's: it ends with the process.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

_PREFIX = ".speechmeter-draft-"


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A new empty file to write; it takes the place of `path` at the end, and is removed where something fails.

    Its name is new, so that nothing is written through a link that somebody left in the folder, and short, so that it
    fits wherever the name of `path` does. Raises OSError where it cannot be made or moved.
    """
    draft, held = _new(path.absolute().parent, _make_file)
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
        os.close(held)


@contextmanager
def draft_folder(parent: Path, prefix: str = "") -> Iterator[Path]:
    """A new folder in `parent`, for nobody else to look into; removed at the end unless it was moved away.

    `prefix` is for paths that must be short, on a disk of this machine alone.
    """
    draft, held = _new(parent.absolute(), _make_folder, prefix)
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        os.close(held)


def _make_file(draft: Path) -> int:
    return os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)


def _make_folder(draft: Path) -> int:
    draft.mkdir(mode=0o700)
    return os.open(draft, os.O_RDONLY)


def _new(folder: Path, make: Callable[[Path], int], prefix: str = "") -> tuple[Path, int]:
    """A new draft and the descriptor that holds it, after drafts were removed that nobody holds."""
    mine = prefix or f"{_PREFIX}{_host()}-"
    for entry in list(os.scandir(folder)):
        if entry.name.startswith(mine):
            with contextlib.suppress(OSError):  # held, removed by another, or on a disk that knows no locks
                _remove_unheld(Path(entry.path))
    while True:
        draft = folder / f"{mine}{token_hex(4 if prefix else 8)}"
        held = make(draft)
        with contextlib.suppress(OSError):  # a disk that knows no locks; or another process took it for unheld
            _lock(held)
        if _is_there(draft, held):
            return draft, held
        os.close(held)


def _is_there(draft: Path, held: int) -> bool:
    try:
        return os.path.samestat(draft.lstat(), os.fstat(held))
    except FileNotFoundError:
        return False


def _remove_unheld(draft: Path) -> None:
    """Remove a draft of this user and host whose process is gone. Raises OSError where it is held."""
    held = os.open(draft, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        found = os.fstat(held)
        if found.st_uid != os.geteuid():
            return
        _lock(held)
        if stat.S_ISDIR(found.st_mode):
            shutil.rmtree(draft)
        else:
            draft.unlink()
    finally:
        os.close(held)


def _lock(held: int) -> None:
    import fcntl

    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _host() -> str:
    """Locks may not reach across machines: each removes its own drafts alone."""
    return re.sub(r"[^A-Za-z0-9]+", "-", socket.gethostname())[:40]
