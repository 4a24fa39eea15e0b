"""The end of what a process prints."""

from __future__ import annotations

import os

_KEPT_BYTES = 64 * 1024
_CHUNK = 1 << 16


class Tail:
    """A pipe for what a process prints, of which the last 64 KiB are kept.

    It is read as it comes, so that no amount of output fills a disk or stops the process.
    """

    def __init__(self) -> None:
        self.read_fd, self.write_fd = os.pipe()
        os.set_blocking(self.read_fd, False)
        self.kept = b""

    def read(self) -> bool:
        """Take what is there; False once no process can write any more."""
        try:
            chunk = os.read(self.read_fd, _CHUNK)
        except BlockingIOError:
            return True
        self.kept = (self.kept + chunk)[-_KEPT_BYTES:]
        return bool(chunk)

    def drain(self) -> None:
        """Take what is left, without waiting for a writer that is still there."""
        for _ in range(_KEPT_BYTES):
            before = self.kept
            if not self.read() or self.kept is before:
                return

    def close(self) -> None:
        """Close the reading end."""
        os.close(self.read_fd)

    def last_line(self) -> str:
        """The last line with anything in it, at most 200 characters."""
        lines = [line.strip() for line in self.kept.decode(errors="replace").splitlines() if line.strip()]
        return lines[-1][:200] if lines else ""
