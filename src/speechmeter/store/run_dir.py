"""One run on disk: `plan.yaml`, `records.jsonl` (append-only truth), `environments.jsonl`, `artifacts/`, `tables/`.

A run may come from a stranger. None of its own files is read or written through a link: what a link points to is not
part of the run.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from speechmeter.core.errors import CannotGoOnError, RunDirError, SkippedLinesWarning, StoreError
from speechmeter.core.files import whole_file
from speechmeter.core.types import FAILED, Environment, Record
from speechmeter.store.lines import KEPT, Skipped, append_line, as_read, cut_torn_line, line_of, read_lines
from speechmeter.store.schema import NewerSchemaError, environment_from_line, record_from_line

PLANNED_FILE = "planned.json"
_FILES = ("plan.yaml", "records.jsonl", "environments.jsonl", PLANNED_FILE)
_TABLES = "tables"
CHOSEN_FILE = "chosen.yaml"
"""The plan of the configuration that a tuning chose."""
_OURS = (*_FILES, CHOSEN_FILE, "artifacts", _TABLES)
_Item = TypeVar("_Item")
_LEAST_ROOM = 64 * 1024
"""Bytes. With less free space than this the disk counts as full."""
_LARGEST_PLANNED = 64 * 2**20
_MOST_READ, _LARGEST_READ = 30, 20 * 2**20
"""So many runs of a folder are read at most to learn from them, and none that is larger than so many bytes."""
_NAME_A_RUN = "use a directory that `speechmeter run` wrote"


@dataclass(frozen=True, kw_only=True)
class Planned:
    """What a run was started to measure: the ids of its cases, and how many rounds each of them gets at least.

    Kept in `planned.json`, so that a reader can see whether the run was finished.
    """

    cases: tuple[str, ...]
    rounds: int

    def text(self) -> str:
        """The content of the file."""
        return json.dumps({"rounds": self.rounds, "cases": list(self.cases)}) + "\n"


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
        """A run directory that exists. Raises RunDirError when it does not."""
        run = cls(path)
        if not is_run(path):
            what = "there is no such directory" if not path.exists() else "this is not a run directory"
            raise RunDirError(what, where=str(path), fix=_NAME_A_RUN)
        run.refuse_links()
        return run

    def refuse_links(self) -> None:
        """Raise RunDirError where a file of the run is a link, which may lead to any file here, or a directory."""
        for name in _FILES:
            entry = self.path / name
            if entry.is_symlink():
                raise _is_link(entry)
            if entry.exists() and not entry.is_file():
                raise RunDirError("this is not a file", where=str(entry), fix=_NAME_A_RUN)

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
        found = {data["fingerprint"]: data for data in self._read(self.environments_path, environment_from_line)}
        self._warn()
        return found

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """The lines that were left out when the files of this run were last read."""
        return tuple(self._skipped.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for below a table of this run: a warning for each file in which lines were skipped."""
        return tuple(f"warning: {skipped.note}" for skipped in self.skipped)

    def planned(self) -> Planned | None:
        """What was planned; None where no file says so that can be read, as in runs of older versions."""
        path = self.path / PLANNED_FILE
        try:
            if path.is_symlink() or path.stat().st_size > _LARGEST_PLANNED:
                return None
            data = json.loads(path.read_bytes())
            cases, rounds = data["cases"], data["rounds"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        if type(rounds) is not int or rounds < 1 or not isinstance(cases, list):
            return None
        return Planned(cases=tuple(cases), rounds=rounds) if all(isinstance(one, str) for one in cases) else None

    def _read(self, path: Path, made_of: Callable[[Any], _Item]) -> list[_Item]:
        if not path.is_file():
            return []
        items: list[_Item] = []
        reasons: dict[int, str] = {}
        count = 0

        def skip(number: int, reason: str) -> None:
            nonlocal count
            count += 1
            if len(reasons) < KEPT:
                reasons[number] = reason

        for number, data in read_lines(path, skip):
            try:
                items.append(made_of(data))
            except NewerSchemaError as error:
                raise StoreError(f"{path}:{number}: {error}") from error
            except StoreError as error:
                skip(number, str(error))
        self._skipped.pop(path, None)
        if count:
            self._skipped[path] = Skipped(path=path, count=count, reasons=reasons, read=len(items))
        return items

    def _warn(self) -> None:
        """Warn from this one line for all readers, so that a command that reads a run several times warns once."""
        for skipped in self._skipped.values():
            warnings.warn(SkippedLinesWarning(skipped.note), stacklevel=1)


def unfinished(folder: Path, records: Sequence[Record]) -> str:
    """What is missing from a run: `12 of 63 cases have no record, 3 have fewer than 5 rounds`; empty if nothing is."""
    planned = RunDir(folder).planned()
    if planned is None:
        return ""
    found = Counter(record.case.id for record in records)
    absent = sum(case not in found for case in planned.cases)
    short = sum(0 < found[case] < planned.rounds for case in planned.cases)
    parts = []
    if absent:
        parts.append(f"{absent} of {len(planned.cases)} cases {'has' if absent == 1 else 'have'} no record")
    if short:
        whole = "" if absent else f" of {len(planned.cases)} cases"
        parts.append(f"{short}{whole} {'has' if short == 1 else 'have'} fewer than {planned.rounds} rounds")
    return ", ".join(parts)


class RunWriter(RunDir):
    """The one writer of a run directory, for as long as the `with` block lasts. A second one is refused."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._lock: int | None = None
        self._known: set[str] = set()
        self._made: tuple[Path, ...] = ()

    def __enter__(self) -> RunWriter:
        import fcntl

        with self._writing():
            self._made = tuple(path for path in (self.artifacts_path, self.path) if not path.exists())
            self.path.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path, os.O_RDONLY)
        try:
            # the directory itself is locked: no lock file stays behind, and the lock ends with the process
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise RunDirError(
                "another run is writing to this directory",
                where=str(self.path),
                fix="wait until it ends, or choose another `output`",
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
            for folder, folders, files in os.walk(self.artifacts_path):
                for entry in (Path(folder), *(Path(folder, name) for name in (*folders, *files))):
                    if entry.is_symlink():
                        raise _is_link(entry)
            cut_torn_line(self.records_path)
            cut_torn_line(self.environments_path)
            self._known = set(self.environments())
            _replace_whole(self.plan_path, plan_text)
            if planned is not None:
                _replace_whole(self.path / PLANNED_FILE, planned.text())
            self.records_path.touch()

    def append(self, record: Record, environment: Environment | None = None) -> None:
        """Append a record, and its environment when that is new; both are on disk on return.

        Raises CannotGoOnError when they cannot be written, and for a failure on a full disk: such a failure says
        nothing about the case, which is to be measured again. Raises StoreError, with nothing written, for a record
        that could not be read back.
        """
        record_from_line(as_read(record.to_json()))
        if record.status in FAILED:
            room = os.statvfs(self.path)
            if room.f_bavail * room.f_frsize < _LEAST_ROOM:
                raise CannotGoOnError(
                    f"no space left on the disk of {self.path}; free some, then use `resume` to continue"
                )
        if environment is not None and environment.fingerprint not in self._known:
            append_line(self.environments_path, environment.to_json())
            self._known.add(environment.fingerprint)
        append_line(self.records_path, record.to_json())

    def replace_records(self, changed: Sequence[Record]) -> None:
        """Write these in place of the records of the same case, round and host; all other lines stay as they are.

        The file holds all of them afterwards, or what it held before. Raises RunDirError where it cannot be written,
        and StoreError for a record that could not be read back.
        """
        left = {(record.key, record.host): as_read(record.to_json()) for record in changed}
        for data in left.values():
            record_from_line(data)
        self.refuse_links()
        with self._writing(), whole_file(self.records_path) as draft, self.records_path.open("rb") as file:
            lines = file.readlines()
            with draft.open("wb") as new:
                # of a round that was measured again the last line counts, which is the first from the end
                made = [_replaced(line, left) for line in reversed(lines)]
                new.writelines(reversed(made))
                new.flush()
                os.fsync(new.fileno())
        if left:
            raise StoreError(f"{self.records_path}: {len(left)} records are not in this file")

    def write_table(self, name: str, text: str) -> Path:
        """Write a table that readers want as a file; an earlier one of this name is replaced. Returns its path.

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
                f"{folder / name} cannot be written: {error.strerror}; free some disk space, then use `resume`"
            ) from error
        return folder / name

    def write_chosen(self, text: str) -> None:
        """Write the plan of the configuration that a tuning chose; an earlier one is replaced."""
        with self._writing():
            _replace_whole(self.path / CHOSEN_FILE, text)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """An error before the first record is bad input, and directories that were made for nothing are removed."""
        try:
            yield
        except OSError as error:
            for made in self._made:
                with contextlib.suppress(OSError):  # not there yet, or not empty
                    made.rmdir()
            raise RunDirError(
                f"cannot be written: {error.strerror}",
                where=str(self.path),
                fix="make it writable and free some disk space, or choose another `output`",
            ) from error


def new_run(name: str, folder: Path = Path("runs")) -> Path:
    """`<folder>/<time>-<name>`, with a number appended where that exists already."""
    base = folder / f"{datetime.now():%Y%m%d-%H%M%S}-{name}"
    return next(path for n in range(1000) if not (path := Path(f"{base}-{n}" if n else base)).exists())


def newest_runs(folder: Path) -> list[RunDir]:
    """The newest runs in a folder, the oldest of them first; without those that would take long to read."""
    if not folder.is_dir():
        return []
    found = [RunDir(path) for path in folder.iterdir() if path.is_dir() and is_run(path)]
    files = {run: run.records_path.stat() for run in found if run.records_path.is_file()}
    small = [run for run, file in files.items() if file.st_size < _LARGEST_READ]
    return sorted(small, key=lambda run: files[run].st_mtime)[-_MOST_READ:]


def is_free(path: Path) -> bool:
    """Whether a new run may be written here: absent, or an empty directory."""
    return not path.exists() or (path.is_dir() and not any(path.iterdir()))


def is_run(path: Path) -> bool:
    """Whether this is a run directory of ours."""
    return (path / "plan.yaml").is_file() or (path / "records.jsonl").is_file()


def _replaced(line: bytes, left: dict[tuple[tuple[str, int], str], Any]) -> bytes:
    """The line, or the new data of its record, which is then taken out of `left`."""
    try:
        data = json.loads(line)
        key = ((data["id"], data["round"]), data.get("host", ""))
    except (ValueError, KeyError, TypeError):
        return line
    return line_of(left.pop(key)) if key in left else line


def _replace_whole(path: Path, text: str) -> None:
    """The file holds the text afterwards, or what it held before."""
    with whole_file(path) as draft:
        draft.write_text(text, encoding="utf-8")


def _is_link(path: Path) -> RunDirError:
    return RunDirError(
        "this is a symbolic link, which may point outside the run directory",
        where=str(path),
        fix="replace it with the file itself",
    )
