"""What a query gave, in every format that `show` has."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from typing import Any

from speechmeter.report import text
from speechmeter.report.escaping import csv_text, json_of
from speechmeter.report.tables import Cell, Row, Table

Values = Sequence[Any]


def result_table(title: str, columns: Sequence[str], rows: Sequence[Values], notes: Sequence[str] = ()) -> Table:
    """A table of plain values: columns before the first with numbers are labels, the others are figures."""
    labels = next((index for index in range(len(columns)) if _numeric([row[index] for row in rows])), len(columns))
    return Table(
        title=title,
        metric=None,
        labels=tuple(columns[:labels]),
        columns=tuple(columns[labels:]),
        rows=tuple(
            Row(labels=tuple(map(_text, row[:labels])), cells=tuple(Cell(word=_text(value)) for value in row[labels:]))
            for row in rows
        ),
        notes=tuple(notes),
    )


def result_csv(title: str, columns: Sequence[str], rows: Sequence[Values], notes: Sequence[str] = ()) -> str:
    """A line for the names and one a row, numbers unrounded; lists as JSON."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(csv_text, columns))
    writer.writerows(
        [csv_text(plain) if isinstance(plain := _plain(value), str) else plain for value in row] for row in rows
    )
    return out.getvalue()


def result_json(title: str, columns: Sequence[str], rows: Sequence[Values], notes: Sequence[str] = ()) -> str:
    """A list of objects, one a row."""
    data = [dict(zip(columns, row, strict=True)) for row in rows]
    return json_of(data)


def _numeric(values: Values) -> bool:
    numbers = [value for value in values if value is not None]
    return bool(numbers) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in numbers)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(_plain(value))


def _plain(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, list | dict) else value


FORMATS: dict[str, Callable[..., str]] = {
    "markdown": lambda *result: text.markdown([result_table(*result)]),
    "csv": result_csv,
    "latex": lambda *result: text.latex([result_table(*result)]),
    "json": result_json,
}
"""Text formats of a result by name; `table` is the terminal's."""
