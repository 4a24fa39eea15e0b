"""One run on disk: `plan.yaml`, `records.jsonl` (append-only truth), `environments.jsonl`, `artifacts/`, `tables/`.

A run may come from a stranger. None of its own files is read or written through a link: what a link points to is not
part of the run.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar, cast

from speechmeter.core.drafts import whole_file
from speechmeter.core.errors import CannotGoOnError, RunDirError, SkippedLinesWarning, StoreError
from speechmeter.core.types import FAILED, Environment, Record
from speechmeter.store.checked import check_environment
from speechmeter.store.lines import append_line, as_read, cut_torn_line, read_lines
from speechmeter.store.planned import FILE as PLANNED_FILE
from speechmeter.store.planned import Planned
from speechmeter.store.schema import NewerSchemaError, record_from_line
from speechmeter.store.skipped import Skipped, Skipping

_FILES = ("plan.yaml", "records.jsonl", "environments.jsonl", PLANNED_FILE)
_TABLES = "tables"
_OURS = (*_FILES, "artifacts", _TABLES)
_Item = TypeVar("_Item")
_LEAST_ROOM = 64 * 1024
"""Bytes; with less than this the disk is full."""


class RunDir:
    """Reading side of a run directory. Nothing is created or changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.plan_path = path / "plan.yaml"
        self.records_path = path / "records.jsonl"
        self.environments_path = path / "environments.jsonl"
        self.artifacts_path = path / "artifacts"
        self._skipped: dict[Path, Skipped] = {}

    @classmethod
    def existing(cls, path: Path) -> RunDir:
        """A run directory that is there. Raises RunDirError when it is not."""
        run = cls(path)
        if not run.records_path.is_file() and not run.plan_path.is_file():
            what = "there is no such directory" if not path.exists() else "this is not a run directory"
            raise RunDirError(what, where=str(path), fix="name a directory that `speechmeter run` wrote")
        run.refuse_links()
        return run

    def refuse_links(self) -> None:
        """Raise RunDirError where a file of the run is a link, whose content may be anything here, or is no file."""
        for name in _FILES:
            entry = self.path / name
            if entry.is_symlink():
                raise _is_link(entry)
            if entry.exists() and not entry.is_file():
                raise RunDirError(
                    "this is no file", where=str(entry), fix="name a directory that `speechmeter run` wrote"
                )

    def records(self) -> list[Record]:
        """The records in the order they were written; of a (case, round) measured again on a host, the last.

        A line that cannot be read is skipped, with a SkippedLinesWarning, and is in `skipped` from then on. Raises
        StoreError where no line can be read, and for a line of a newer Speechmeter.
        """
        records = self._read(self.records_path, record_from_line)
        skipped = self._skipped.get(self.records_path)
        if skipped is not None and not records:
            raise StoreError(f"{skipped.first}; no line of this file can be read")
        self._warn()
        latest = {(record.key, record.host): record for record in records}
        return sorted(latest.values(), key=lambda record: record.sequence)

    def environments(self) -> dict[str, Mapping[str, Any]]:
        """Environments by fingerprint. A line that cannot be read is skipped, as in `records`."""
        found = {data["fingerprint"]: data for data in self._read(self.environments_path, _environment)}
        self._warn()
        return found

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """The lines that were left out when the files of this run were last read."""
        return tuple(self._skipped.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """What stands below a table of this run: a warning for each file of which lines were left out."""
        return tuple(f"warning: {skipped.note}" for skipped in self.skipped)

    def _read(self, path: Path, made_of: Callable[[Any], _Item]) -> list[_Item]:
        if not path.is_file():
            return []
        broken = Skipping()
        items: list[_Item] = []
        for number, data in read_lines(path, broken.skip):
            try:
                items.append(made_of(data))
            except NewerSchemaError as error:
                raise StoreError(f"{path}:{number}: {error}") from error
            except StoreError as error:
                broken.skip(number, str(error))
        self._skipped.pop(path, None)
        if broken.count:
            self._skipped[path] = broken.of(path, len(items))
        return items

    def _warn(self) -> None:
        """From this line for all readers: a command that reads a run several times then warns once."""
        for skipped in self._skipped.values():
            warnings.warn(SkippedLinesWarning(skipped.note), stacklevel=1)


def _environment(data: Any) -> Mapping[str, Any]:
    try:
        check_environment(data)
    except ValueError as error:
        raise StoreError(f"not an environment of ours: {error}") from error
    return cast("Mapping[str, Any]", data)


class RunWriter(RunDir):
    """The one writer of a run directory, for as long as the `with` block lasts. A second one is refused."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._lock: int | None = None
        self._known: set[str] = set()
        self._made: tuple[Path, ...] = ()

    def __enter__(self) -> RunWriter:
        with self._writing():
            self._made = tuple(path for path in (self.artifacts_path, self.path) if not path.exists())
            self.path.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path, os.O_RDONLY)
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
        with self._writing():
            for name in _OURS:
                entry = self.path / name
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry)
                elif entry.exists() or entry.is_symlink():
                    entry.unlink()

    def begin(self, plan_text: str, planned: Planned | None = None) -> None:
        """Store the resolved plan and what is to be measured, and make the files ready for appending.

        Raises RunDirError where this cannot be written, or where a link would lead out of it.
        """
        self.refuse_links()
        with self._writing():
            self.artifacts_path.mkdir(exist_ok=True)
            _refuse_links_in(self.artifacts_path)
            cut_torn_line(self.records_path)
            cut_torn_line(self.environments_path)
            self._known = set(self.environments())
            _replace_whole(self.plan_path, plan_text)
            if planned is not None:
                _replace_whole(self.path / PLANNED_FILE, planned.text())
            self.records_path.touch()

    def append(self, record: Record, environment: Environment | None = None) -> None:
        """Append a record, and its environment when that is new; both are on disk on return.

        Raises CannotGoOnError when they cannot be written, and for a failure on a full disk, which says nothing of
        the case: it is to be measured again. Raises StoreError, with nothing written, for a record that could not be
        read back.
        """
        record_from_line(as_read(record.to_json()))
        if record.status in FAILED:
            self._see_room()
        if environment is not None and environment.fingerprint not in self._known:
            append_line(self.environments_path, environment.to_json())
            self._known.add(environment.fingerprint)
        append_line(self.records_path, record.to_json())

    def write_table(self, name: str, text: str) -> Path:
        """Write a table that readers want as a file; an earlier one of this name is replaced. Returns where it is.

        Raises CannotGoOnError where it cannot be written, and RunDirError where the folder is a link.
        """
        folder = self.path / _TABLES
        if folder.is_symlink():
            raise _is_link(folder)
        try:
            folder.mkdir(exist_ok=True)
            _replace_whole(folder / name, text)
        except OSError as error:
            raise CannotGoOnError(
                f"{folder / name}: cannot be written: {error.strerror}; make room, then add --resume"
            ) from error
        return folder / name

    def _see_room(self) -> None:
        room = os.statvfs(self.path)
        if room.f_bavail * room.f_frsize < _LEAST_ROOM:
            raise CannotGoOnError(f"{self.path}: no space left on the disk; make room, then add --resume")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """What goes wrong before the first record is bad input; directories that were made for nothing go again."""
        try:
            yield
        except OSError as error:
            for made in self._made:
                with contextlib.suppress(OSError):  # not there yet, or not empty
                    made.rmdir()
            raise RunDirError(
                f"cannot be written: {error.strerror}",
                where=str(self.path),
                fix="make it writable and make room, or choose another place with -o",
            ) from error


def new_run(name: str, folder: Path = Path("runs")) -> Path:
    """`<folder>/<time>-<name>`, with a number behind it where that exists already."""
    base = folder / f"{datetime.now():%Y%m%d-%H%M%S}-{name}"
    return next(path for n in range(1000) if not (path := Path(f"{base}-{n}" if n else base)).exists())


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


def _replace_whole(path: Path, text: str) -> None:
    """The file holds the text, or what it held before."""
    with whole_file(path) as draft:
        draft.write_text(text, encoding="utf-8")


def _refuse_links_in(folder: Path) -> None:
    if folder.is_symlink():
        raise _is_link(folder)
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            if Path(place, name).is_symlink():
                raise _is_link(Path(place, name))


def _is_link(path: Path) -> RunDirError:
    return RunDirError(
        "this is a link, which may lead out of the run", where=str(path), fix="put the file itself in its place"
    )
