"""SQL over runs, with the figures that tables show as a table of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from speechmeter.analysis.metric_names import Figures
from speechmeter.analysis.selecting import by_case
from speechmeter.api.frames import figure_row
from speechmeter.core.errors import InputError, command_line
from speechmeter.core.files import check_free, written_by_user
from speechmeter.core.hosts import as_stored, hosts_apart
from speechmeter.store import query as store
from speechmeter.store.columns import ESTIMATES, TABLES
from speechmeter.store.query import FILES, Result
from speechmeter.store.run_dir import RunDir


def query(runs: Sequence[str | Path], sql: str) -> Result:
    """Run one SELECT over the records of run directories: the names of its columns, and its rows.

    Raises RunDirError for what is not a run, InputError for SQL that cannot be run.
    """
    return store.query(_existing(runs), sql, estimate_rows)


def export(runs: Sequence[str | Path], sql: str, output: str | Path, *, force: bool = False) -> int:
    """Write what a SELECT gives to `output`, a `.parquet` or `.csv` file; the number of rows.

    An existing file is refused unless `force`.
    """
    path = Path(output)
    if path.suffix not in FILES:
        raise InputError(
            f"the format is unknown: {path.name} has no known suffix", key="output", fix=f"use {' or '.join(FILES)}"
        )
    check_free(path, force=force)
    with written_by_user(path):
        return store.export(_existing(runs), sql, estimate_rows, path)


def split_query(words: Sequence[str]) -> tuple[list[str], str | None]:
    """The runs, and the query after them: a last word that has a space in it and is not a directory."""
    *runs, last = words
    if " " not in last.strip() or Path(last).exists():
        return list(words), None
    if not runs:
        raise InputError("no run is named", where="query", fix=f"{command_line('query', 'RUN')} {last!r}")
    return runs, last


def described(runs: Sequence[str | Path]) -> Result:
    """The tables that a query can name, with their columns. Raises RunDirError for what is not a run."""
    _existing(runs)
    rows = [(name, c.name, c.type, c.meaning) for name, columns in TABLES.items() for c in columns]
    return Result(columns=("table", "column", "type", "meaning"), rows=tuple(rows))


def estimate_rows(name: str, run: RunDir) -> Iterator[dict[str, Any]]:
    """The figures of every case of a run, a row each, as the table `estimates` has them."""
    figures = Figures()
    for group in by_case(hosts_apart(run.records())).values():
        case = as_stored(group[0].case)
        labels = {column.name: case.axes.get(column.name) for column in ESTIMATES}
        labels |= {"run": name, "case_id": case.id, "subject": case.subject.name, "workload": case.workload.name}
        labels |= {"host": group[0].host, "axes": dict(case.axes)}
        for scope, found in figures.of(group):
            yield labels | figure_row(scope, found)


def _existing(runs: Sequence[str | Path]) -> list[RunDir]:
    return [RunDir.existing(path) for path in dict.fromkeys(map(Path, runs))]
