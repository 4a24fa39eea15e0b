"""Files: of strangers, read no further than to a limit; our own, written whole or not at all."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import re
import shutil
import socket
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO, cast

from speechmeter.core.errors import InputError

MIB = 2**20
MOST_RATIO = 200
"""Lists and traces shrink to a fifth or a fiftieth. gzip can do 1000, on text that says nothing."""
_FROM_BYTES = 16 * MIB
"""Below this much unpacked text any ratio is harmless."""
_GZIP = b"\x1f\x8b"
_BLOCK = 2**16


@contextmanager
def opened(path: Path, most_bytes: int | None) -> Iterator[BinaryIO]:
    """The bytes of a plain or gzipped file, as they are asked for.

    Raises InputError where they are more than `most_bytes`, or many times what was packed, and where a gzipped file is
    damaged; OSError where the file cannot be read.
    """
    with path.open("rb") as file:
        packed = file.peek(len(_GZIP)).startswith(_GZIP)
        size = os.fstat(file.fileno()).st_size
        if most_bytes is not None and size > most_bytes:
            raise _too_large(path, most_bytes)
        try:
            yield cast(BinaryIO, io.BufferedReader(_Bounded(path, file, packed, most_bytes), _BLOCK))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(
                f"the gzipped file is truncated or damaged: {error}", where=str(path), fix="use a complete file"
            ) from error


def read_bytes(path: Path, most_bytes: int) -> bytes:
    """All bytes of a plain or gzipped file. Raises as `opened`."""
    with opened(path, most_bytes) as file:
        return file.read()


def read_text(path: Path, most_bytes: int) -> str:
    """All text of a plain or gzipped file in UTF-8, a mark at its beginning left out. Raises UnicodeDecodeError too."""
    return read_bytes(path, most_bytes).decode("utf-8-sig")


class _Bounded(io.RawIOBase):
    """The content of a file, which ends with an error where there is too much of it."""

    def __init__(self, path: Path, file: io.BufferedReader, packed: bool, most_bytes: int | None) -> None:
        self._path, self._file, self._most_bytes = path, file, most_bytes
        self._content: io.BufferedIOBase = gzip.GzipFile(fileobj=file) if packed else file
        self._packed, self._given = packed, 0

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill the buffer with what comes next; 0 at the end."""
        data = self._content.read1(min(len(buffer), _BLOCK))  # all that is sound in front of a damaged part
        buffer[: len(data)] = data
        self._given += len(data)
        if self._most_bytes is not None and self._given > self._most_bytes:
            raise _too_large(self._path, self._most_bytes)
        if self._packed and self._given > _FROM_BYTES and self._given > MOST_RATIO * self._file.tell():
            raise InputError(
                f"the gzipped file unpacks to more than {MOST_RATIO} times its size, too much for a list or trace",
                where=str(self._path),
                fix="unpack it yourself, and check its content",
            )
        return len(data)


def _too_large(path: Path, most_bytes: int) -> InputError:
    size = f"{most_bytes // MIB} MiB" if most_bytes >= MIB else f"{most_bytes} bytes"
    return InputError(f"the file is larger than {size}", where=str(path), fix="split it, or use another file")


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
    # locks may not reach across machines: each removes its own drafts alone
    host = re.sub(r"[^A-Za-z0-9]+", "-", socket.gethostname())[:40]
    mine = prefix or f"{_PREFIX}{host}-"
    for entry in list(os.scandir(folder)):
        if entry.name.startswith(mine):
            with contextlib.suppress(OSError):  # held, removed by another, or on a disk that knows no locks
                _remove_unheld(Path(entry.path))
    while True:
        draft = folder / f"{mine}{token_hex(4 if prefix else 8)}"
        held = make(draft)
        with contextlib.suppress(OSError):  # a disk that knows no locks; or another process took it for unheld
            _lock(held)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(draft.lstat(), os.fstat(held)):
                return draft, held
        os.close(held)


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


_ELSEWHERE = "make it writable and free some disk space, or choose another directory"


def check_free(path: Path, *, force: bool, makes_folder: bool = False) -> None:
    """Raise InputError where a file exists and may not be replaced, or where none can be written.

    Checked before any work is done, as far as that can be known. With `makes_folder` a missing folder is made later.
    """
    with written_by_user(path):
        if path.is_dir():
            raise InputError(f"{path} is a directory", key="output", fix="use a file name in it")
        if path.exists() and not force:
            raise InputError(f"{path} already exists", key="output", fix="add `force`, or choose another name")
        folder = path.absolute().parent
        if makes_folder:
            folder = next(above for above in (folder, *folder.parents) if above.exists())
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file, not a directory", key="output", fix="choose another name")
        if not folder.exists():
            raise InputError(
                f"there is no directory {path.parent}", key="output", fix="create it, or choose another name"
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
