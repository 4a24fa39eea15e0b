"""Files by which sound goes to a runner and comes back: in memory where the system has such a folder."""

from __future__ import annotations

import io
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from speechmeter.core.errors import SubjectError
from speechmeter.core.types import Speech

_IN_MEMORY = Path("/dev/shm")
_PREFIX = "speechmeter-runner-"
_MOST_BYTES = 2**30
"""Of a file that a runner wrote: hours of sound."""


class Exchanged:
    """A folder of this process. `write` puts what a runner gets there, `read` takes what it made."""

    def __init__(self, within: Path = _IN_MEMORY) -> None:
        parent = within if within.is_dir() and os.access(within, os.W_OK) else Path(tempfile.gettempdir())
        _remove_leftovers(parent)
        self._folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=parent))

    def write(self, index: int, suffix: str, data: bytes) -> Path:
        """The path of a file with these bytes, in the place of that of the call before."""
        path = self._folder / f"{index}{suffix}"
        path.write_bytes(data)
        return path

    def made(self, index: int) -> Path:
        """Where a runner is to write a WAV file, which is not there now."""
        path = self._folder / f"made-{index}.wav"
        path.unlink(missing_ok=True)
        return path

    def read(self, index: int) -> Speech:
        """The sound in it. SubjectError where there is none."""
        path = self._folder / f"made-{index}.wav"
        import numpy as np
        import soundfile

        try:
            samples, rate = soundfile.read(io.BytesIO(_content(path)), dtype="float32", always_2d=True)
        except FileNotFoundError:
            raise SubjectError(
                "the runner answered, but it did not write the sound", fix="write a WAV file to the path in `out`"
            ) from None
        except (OSError, RuntimeError, ValueError, soundfile.LibsndfileError) as error:
            raise SubjectError(
                f"the sound that the runner wrote cannot be read: {error}", fix="write a WAV file to the path in `out`"
            ) from error
        mono: Any = np.ascontiguousarray(samples.mean(axis=1))
        return Speech(samples=mono, rate=int(rate))

    def close(self) -> None:
        """Remove it all."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _content(path: Path) -> bytes:
    """Of a plain file alone: a pipe in its place would never end."""
    opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    with os.fdopen(opened, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("it is not a plain file")
        if found.st_size > _MOST_BYTES:
            raise ValueError(f"it is larger than {_MOST_BYTES >> 30} GiB")
        return file.read()


def _remove_leftovers(parent: Path) -> None:
    """Folders of processes that were killed."""
    for folder in parent.glob(f"{_PREFIX}*"):
        pid = folder.name.removeprefix(_PREFIX).partition("-")[0]
        with suppress(OSError):
            if pid.isdigit() and not _lives(int(pid)) and folder.stat().st_uid == os.getuid():
                shutil.rmtree(folder, ignore_errors=True)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
