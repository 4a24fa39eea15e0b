"""Tables as HTML for a notebook: the same cells as everywhere, and no colours of our own, so that any theme fits.

A notebook that is not trusted drops style sheets and scripts, so there are none. What hides is in `details`.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

from speechmeter.core.printable import one_line
from speechmeter.report.tables import Cell, Table

MOST_ROWS = 24
"""A table with more rows is cut, and says so: an output of a notebook is for a first look."""
_WIDE = '<div style="max-width:100%;overflow-x:auto">'
_LABEL, _FIGURE = ' style="text-align:left;white-space:nowrap"', ' style="text-align:right;white-space:nowrap"'
_WORDS = ' style="text-align:left;min-width:18em"'
_LONG = 32
"""Letters of a cell from which on it is read as words, and may take several lines."""
_MOST_CAVEATS = 4
"""So many lines are open below a table; more would hide the next output."""


def notebook_html(title: str, tables: Sequence[Table], more: str) -> str:
    """A title and tables: the first one open, the others folded under their titles.

    `more` says how to get the rows that are cut.
    """
    shown = [_table(table, more) for table in tables[:1]]
    shown += [_folded(table.title, _table(table, more)) for table in tables[1:]]
    return "\n".join([f'<div class="mathjax_ignore tex2jax_ignore"><strong>{_text(title)}</strong>', *shown, "</div>"])


def _table(table: Table, more: str) -> str:
    head = "".join([*(f"<th{_LABEL}>{_text(word)}</th>" for word in table.labels),
                    *(f"<th{_FIGURE}>{_text(word)}</th>" for word in table.columns)])  # fmt: skip
    rows = [
        "".join(["<tr>", *(f"<th{_LABEL}>{_text(word)}</th>" for word in row.labels), *map(_cell, row.cells), "</tr>"])
        for row in table.rows[:MOST_ROWS]
    ]
    cut = len(table.rows) - MOST_ROWS
    below = [*([f"{cut} more rows: {more}"] if cut > 0 else []), *table.caveats[:_MOST_CAVEATS]]
    notes = (*table.caveats[_MOST_CAVEATS:], *table.notes)
    return "\n".join(
        [
            f'{_WIDE}<table><caption style="text-align:left;caption-side:top">{_text(table.title)}</caption>',
            f"<thead><tr>{head}</tr></thead><tbody>",
            *rows,
            "</tbody></table></div>",
            *(f"<div><small>{_text(line)}</small></div>" for line in below),
            *([_folded("Definitions and notes", _list(notes))] if notes else []),
        ]
    )


def _cell(cell: Cell) -> str:
    text = cell.text()
    why = f' title="{_text(cell.reason)}"' if cell.reason else ""
    return f"<td{_WORDS if len(text) > _LONG else _FIGURE}{why}>{_text(text)}</td>"


def _list(lines: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li><small>{_text(line)}</small></li>" for line in lines) + "</ul>"


def _folded(title: str, content: str) -> str:
    return f"<details><summary>{_text(title)}</summary>\n{content}\n</details>"


def _text(text: str) -> str:
    return html.escape(one_line(text))
