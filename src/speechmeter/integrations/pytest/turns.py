"""One measurement at a time on a machine, from the root folder of the test suite."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def turn() -> Iterator[None]:
    """Wait for the measurements of other workers and sessions of this user. The lock ends with the process."""
    import fcntl

    lock = os.open(Path(tempfile.gettempdir()) / f"speechmeter-{os.getuid()}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    """The working directory while it lasts: paths in records then start at the same place in every session."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
