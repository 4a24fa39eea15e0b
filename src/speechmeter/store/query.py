"""SQL over records: DuckDB with declared columns, shut off from files, network and Python before a query is run.

`records` and `measurements` are read from the lines themselves, and only from those that `RunDir.records` accepts.
`estimates` are rows that the caller computes, since only `analysis` makes figures. A table that the query does not name
is not read. DuckDB treats a path as a pattern and its folders as columns, so files are opened here and DuckDB gets
their descriptors.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, BinaryIO

from speechmeter.core.errors import InputError, StoreError
from speechmeter.core.files import whole_file
from speechmeter.core.printable import FORMULA, MARK, NUMBER, REORDERS
from speechmeter.store.columns import ENVIRONMENTS, LINE, LINE_MEASUREMENTS, TABLES
from speechmeter.store.lines import write_lines
from speechmeter.store.run_dir import RunDir
from speechmeter.store.verified import is_verified

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection

Rows = Iterable[Mapping[str, Any]]
Estimates = Callable[[str, RunDir], Rows]
"""From a run and its name to the rows of its figures."""

FILES = (".parquet", ".csv")
"""What a result can be written as."""
_LARGEST_LINE = 16 * 2**20
_FIX = "`speechmeter query RUN` lists the tables and their columns"


@dataclass(frozen=True, kw_only=True)
class Result:
    """The result of a query: the names of its columns, its rows as plain values, and notes for the reader."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    notes: tuple[str, ...] = ()


def query(runs: Sequence[RunDir], sql: str, estimates: Estimates) -> Result:
    """Run one SELECT over the records of the runs. Raises InputError for SQL that cannot be run or is no SELECT."""
    with _loaded(runs, sql, estimates) as database, _clear_errors():
        answer = database.execute(sql)
        names, kinds = zip(*((column[0], str(column[1])) for column in answer.description or ()), strict=True)
        rows = tuple(
            tuple(
                json.loads(value) if kind == "JSON" and value is not None else value
                for value, kind in zip(row, kinds, strict=True)
            )
            for row in answer.fetchall()
        )
    return Result(columns=names, rows=rows, notes=tuple(note for run in runs for note in run.notes))


def export(runs: Sequence[RunDir], sql: str, estimates: Estimates, output: Path) -> int:
    """Write the result of a SELECT to a Parquet or CSV file, whole or not at all. Returns the number of rows.

    Raises InputError as `query` does, and OSError where the file cannot be written.
    """
    query, kind = sql.strip().rstrip(";"), "FORMAT parquet"
    with (
        whole_file(output) as draft,
        _loaded(runs, sql, estimates, writable=draft) as database,
        _clear_errors(),
        _refused_by_disk(),
    ):
        if output.suffix == ".csv":
            query, kind = _safe(database, query), "FORMAT csv, HEADER"
        target = f"{_quoted(str(draft))} ({kind}, USE_TMP_FILE false)"
        copied = database.execute(f"COPY ({query}\n) TO {target}").fetchone()
    return int(copied[0]) if copied else 0


def _safe(database: Connection, query: str) -> str:
    """The query with an apostrophe before text that a spreadsheet would compute; other columns are unchanged."""
    columns, names = [], []
    for index, (name, kind, *_) in enumerate(database.execute(f"DESCRIBE {query}").fetchall()):
        own = f"c{index}"  # columns are named anew, since two may have one name
        names.append(own)
        if str(kind) == "VARCHAR":
            text = f"regexp_replace({own}, {_quoted(REORDERS)}, {_quoted(MARK)}, 'g')"
            formula = f"regexp_matches({text}, {_quoted(FORMULA)}) AND NOT regexp_matches({text}, {_quoted(NUMBER)})"
            own = f"CASE WHEN {formula} THEN chr(39) || {text} ELSE {text} END"
        shown = str(name).replace('"', '""')
        columns.append(f'{own} AS "{shown}"')
    return f"SELECT {', '.join(columns)} FROM ({query}\n) AS q({', '.join(names)})"


@contextmanager
def _refused_by_disk() -> Iterator[None]:
    """DuckDB's input and output errors as OSError; what the disk refused is only in their text."""
    try:
        yield
    except _duckdb().IOException as error:
        text = _first_part(error)
        said = next((os.strerror(number) for number in errno.errorcode if os.strerror(number) in text), text)
        raise OSError(None, said) from error


@contextmanager
def _loaded(
    runs: Sequence[RunDir], sql: str, estimates: Estimates, writable: Path | None = None
) -> Iterator[Connection]:
    """A database in memory that holds the tables which the query names, and can reach nothing else.

    What does not fit into memory goes to a folder of ours instead of `.tmp` in the working directory.
    """
    duckdb = _duckdb()
    with (
        TemporaryDirectory(prefix="speechmeter-") as folder,
        duckdb.connect(":memory:", config={"python_enable_replacements": False, "temp_directory": folder}) as database,
    ):
        with _clear_errors():
            statements = database.extract_statements(sql)
        kinds = [str(statement.type).rpartition(".")[2] for statement in statements]
        if kinds not in (["SELECT"], ["EXPLAIN"]):
            raise InputError(
                f"a query must be one SELECT statement, not {' and '.join(kinds) or 'empty'}",
                where="SQL",
                fix="a query only reads; it cannot change records",
            )
        named = {name for name in TABLES if re.search(rf"\b{name}\b", sql, re.IGNORECASE)}
        short = [run.path.resolve().name for run in runs]  # runs of one name are shown by their paths
        names = {name if short.count(name) == 1 else str(run.path): run for name, run in zip(short, runs, strict=True)}
        _load(database, names, named, estimates, Path(folder))
        # from here on no file, no network, no extension and no other setting, except the one file to be written
        database.execute(f"SET allowed_paths = [{'' if writable is None else _quoted(str(writable))}]")
        for setting in ("autoinstall_known_extensions", "autoload_known_extensions", "enable_external_access"):
            database.execute(f"SET {setting} = false")
        database.execute("SET lock_configuration = true")
        yield database


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise InputError(
            "a query needs DuckDB, which is not installed", fix="pip install 'speechmeter[query]'"
        ) from None
    return duckdb


def _load(
    database: Connection, runs: Mapping[str, RunDir], named: set[str], estimates: Estimates, folder: Path
) -> None:
    if named & {"records", "measurements"}:
        columns = {**LINE, **(LINE_MEASUREMENTS if "measurements" in named else {})}
        _read_lines(database, runs, columns, folder)
    if "records" in named:
        database.execute(f"CREATE VIEW records AS SELECT {_selected('records')} FROM lines")
    if "measurements" in named:
        flat = "(SELECT * EXCLUDE measurements, unnest(measurements) AS m FROM lines)"
        database.execute(f"CREATE VIEW measurements AS SELECT {_selected('measurements')} FROM {flat}")
    if "estimates" in named:
        rows = (row for name, run in runs.items() for row in estimates(name, run))
        _from_rows(database, "estimates", rows, folder)
    if "environments" in named:
        _from_rows(database, "environments", _environments(runs), folder)


def _selected(table: str) -> str:
    return ", ".join(f'{column.sql} AS "{column.name}"' for column in TABLES[table])


def _read_lines(database: Connection, runs: Mapping[str, RunDir], columns: Mapping[str, str], folder: Path) -> None:
    """All whole lines; of a (case, round) measured again on a host the last, as in `RunDir.records`."""
    declared = ", ".join(f'"{name}" {type_}' for name, type_ in columns.items())
    database.execute(f"CREATE TABLE lines (run VARCHAR, {declared})")
    for name, run in runs.items():
        if run.records_path.is_file() and not _read_fast(database, name, run, columns):
            _read_upgraded(database, name, run, columns, folder)
    database.execute(
        "DELETE FROM lines WHERE rowid IN (SELECT rowid FROM lines "
        "QUALIFY row_number() OVER (PARTITION BY run, id, round, host ORDER BY rowid DESC) > 1)"
    )


def _read_fast(database: Connection, name: str, run: RunDir, columns: Mapping[str, str]) -> bool:
    """Let DuckDB parse the file. False, with nothing read, where `RunDir.records` would skip or change a line."""
    with run.records_path.open("rb") as file:
        if not is_verified(file):
            return False
        try:
            _insert(database, name, file, columns, _LARGEST_LINE)
        except _duckdb().Error:  # a line is longer than the room that DuckDB is given
            return False
    return True


def _read_upgraded(database: Connection, name: str, run: RunDir, columns: Mapping[str, str], folder: Path) -> None:
    """Read the lines through records in Python: damaged lines are skipped, old ones upgraded."""
    copy = folder / "lines.jsonl"
    write_lines(copy, (record.to_json() for record in run.records()))
    try:
        with copy.open("rb") as file:
            _insert(database, name, file, columns, max(_LARGEST_LINE, copy.stat().st_size))
    except _duckdb().Error as error:
        raise StoreError(f"{run.records_path}: {_first_part(error)}") from error
    finally:
        copy.unlink()


def _insert(database: Connection, name: str, file: BinaryIO, columns: Mapping[str, str], largest: int) -> None:
    source = _reader(file, columns, largest)
    database.execute(f"INSERT INTO lines SELECT {_quoted(name)}, * FROM {source}")


def _reader(file: BinaryIO, columns: Mapping[str, str], largest: int = _LARGEST_LINE) -> str:
    """The open file as a table."""
    declared = ", ".join(f"{_quoted(name)}: {_quoted(type_)}" for name, type_ in columns.items())
    options = f"format = 'newline_delimited', maximum_object_size = {largest}, columns = {{{declared}}}"
    return f"read_json('/dev/fd/{file.fileno()}', {options})"


def _from_rows(database: Connection, table: str, rows: Rows, folder: Path) -> None:
    """A table from rows that were computed here."""
    path = folder / f"{table}.jsonl"
    write_lines(path, rows)
    columns = {column.name: column.type for column in TABLES[table]}
    try:
        with path.open("rb") as file:
            database.execute(f"CREATE TABLE {table} AS SELECT * FROM {_reader(file, columns)}")
    except _duckdb().Error as error:
        raise StoreError(f"DuckDB cannot make the table {table} from these records: {_first_part(error)}") from error


def _environments(runs: Mapping[str, RunDir]) -> Iterator[dict[str, Any]]:
    for name, run in runs.items():
        for fingerprint, data in run.environments().items():
            facts = data.get("facts", {})
            known = {column.name: facts.get(column.name) for column in ENVIRONMENTS}
            yield {**known, "run": name, "environment": fingerprint, "facts": facts, "state": data.get("state")}


@contextmanager
def _clear_errors() -> Iterator[None]:
    """DuckDB's errors about a query as InputError with one line."""
    duckdb = _duckdb()
    try:
        yield
    except duckdb.Error as error:
        raise InputError(_first_part(error), where="SQL", fix=_FIX) from error


def _first_part(error: Exception) -> str:
    """The message without the excerpt of the query below it."""
    return " ".join(str(error).partition("\n\nLINE ")[0].split())


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
