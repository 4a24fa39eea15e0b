"""One run on disk: `plan.yaml`, `records.jsonl` (append-only truth), `environments.jsonl`, `artifacts/`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from speechmeter.core.errors import RunDirError, StoreError
from speechmeter.core.types import Environment, Record
from speechmeter.store.lines import append_line, cut_torn_line, read_lines
from speechmeter.store.schema import record_from_line

_OURS = ("plan.yaml", "records.jsonl", "environments.jsonl", "artifacts")


class RunDir:
    """Reading side of a run directory. Nothing is created or changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.plan_path = path / "plan.yaml"
        self.records_path = path / "records.jsonl"
        self.environments_path = path / "environments.jsonl"
        self.artifacts_path = path / "artifacts"

    @classmethod
    def existing(cls, path: Path) -> RunDir:
        """A run directory that is there. Raises RunDirError when it is not."""
        run = cls(path)
        if not run.records_path.is_file() and not run.plan_path.is_file():
            what = "there is no such directory" if not path.exists() else "this is not a run directory"
            raise RunDirError(what, where=str(path), fix="name a directory that `speechmeter run` wrote")
        return run

    def records(self) -> list[Record]:
        """All whole records in the order they were written; of a (case, round) measured again on a host, the last.

        Raises StoreError naming file and line.
        """
        latest = {(record.key, record.host): record for record in self._records()}
        return sorted(latest.values(), key=lambda record: record.sequence)

    def environments(self) -> dict[str, Mapping[str, Any]]:
        """Environments by fingerprint."""
        if not self.environments_path.is_file():
            return {}
        return {data["fingerprint"]: data for _, data in read_lines(self.environments_path)}

    def _records(self) -> Iterator[Record]:
        if not self.records_path.is_file():
            return
        for number, data in read_lines(self.records_path):
            try:
                yield record_from_line(data)
            except StoreError as error:
                raise StoreError(f"{self.records_path}:{number}: {error}") from error


class RunWriter(RunDir):
    """The one writer of a run directory, for as long as the `with` block lasts. A second one is refused."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._lock: int | None = None
        self._known: set[str] = set()

    def __enter__(self) -> RunWriter:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path, os.O_RDONLY)
        except OSError as error:
            raise RunDirError(
                f"cannot be written: {error.strerror}",
                where=str(self.path),
                fix="choose another place with -o",
            ) from error
        try:
            _hold(lock)
        except OSError:
            os.close(lock)
            raise RunDirError(
                "another run is writing to this directory",
                where=str(self.path),
                fix="wait for it, or choose another -o",
            ) from None
        self._lock = lock
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def clear(self) -> None:
        """Remove what an earlier run left here; files that are not ours stay."""
        for name in _OURS:
            entry = self.path / name
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            elif entry.exists() or entry.is_symlink():
                entry.unlink()

    def begin(self, plan_text: str) -> None:
        """Store the resolved plan and make the files ready for appending."""
        self.artifacts_path.mkdir(exist_ok=True)
        cut_torn_line(self.records_path)
        cut_torn_line(self.environments_path)
        self._known = set(self.environments())
        fresh = self.plan_path.with_suffix(".yaml.new")
        fresh.write_text(plan_text)
        fresh.replace(self.plan_path)
        self.records_path.touch()

    def append(self, record: Record, environment: Environment | None = None) -> None:
        """Append a record, and its environment when that is new; both are on disk on return."""
        if environment is not None and environment.fingerprint not in self._known:
            append_line(self.environments_path, environment.to_json())
            self._known.add(environment.fingerprint)
        append_line(self.records_path, record.to_json())


def is_free(path: Path) -> bool:
    """Whether a new run may be written here: absent, or an empty directory."""
    return not path.exists() or (path.is_dir() and not any(path.iterdir()))


def is_run(path: Path) -> bool:
    """Whether a run of ours stands here."""
    return (path / "plan.yaml").is_file() or (path / "records.jsonl").is_file()


def _hold(directory: int) -> None:
    """Lock the open directory itself: no lock file to leave behind, and the lock ends with the process."""
    import fcntl

    fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
