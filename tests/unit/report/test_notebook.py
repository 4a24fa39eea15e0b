"""Tables in a notebook: the words of strangers are shown, the digits are those of every format, and it stays small."""

from html.parser import HTMLParser

import pytest
from conftest import make_case, make_record

from speechmeter.core import metrics
from speechmeter.core.types import Measurement
from speechmeter.report import choose, text
from speechmeter.report.notebook import MOST_ROWS, notebook_html
from speechmeter.report.tables import Cell, Row, Table


class Read(HTMLParser):
    """The elements, the texts of cells, and the lines of a page; refuses elements that are not closed in order."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.cells, self.lines, self._open = [], [], [], []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self._open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open and self._open[-1] in ("td", "th"):
            self.cells[-1] += data
        elif self._open:
            self.lines.append(data)


def table(title="latency", rows=2, **fields):
    made = tuple(Row(labels=(f"model {index}",), cells=(Cell(word=f"{index} ms"),)) for index in range(rows))
    return Table(title=title, metric=None, labels=("case",), columns=("latency",), rows=made, **fields)


def test_the_first_table_is_open_and_the_others_are_folded():
    html = notebook_html("run", [table("first"), table("second")], "")
    assert html.index("first") < html.index("<details>") < html.index("second")
    assert Read(html).cells == ["case", "latency", "model 0", "0 ms", "model 1", "1 ms"] * 2


def test_a_long_table_is_cut_and_says_how_to_get_the_rest():
    read = Read(notebook_html("run", [table(rows=MOST_ROWS + 5)], "use .table()"))
    assert "5 more rows: use .table()" in read.lines
    assert len(read.cells) == 2 + 2 * MOST_ROWS


def test_caveats_are_below_the_table_and_notes_are_folded():
    html = notebook_html("run", [table(caveats=("one round",), notes=("latency.v1: the wall time",))], "")
    assert html.index("one round") < html.index("<details>") < html.index("the wall time")


@pytest.mark.parametrize("word", ["<script>alert(1)</script>", '" onmouseover="alert(1)', "a\n<b>c", "&lt;img&gt;"])
def test_the_words_of_a_record_are_shown_and_never_obeyed(word):
    record = make_record(make_case(word), status="error", reason=word)
    tables = choose.tables([record], None)
    read = Read(notebook_html(word, tables, word))
    assert set(read.tags) <= {"div", "strong", "table", "caption", "thead", "tbody", "tr", "th", "td", "small",
                              "details", "summary", "ul", "li"}  # fmt: skip
    assert " ".join(word.split()) in read.lines


def test_a_notebook_shows_the_digits_of_every_other_format():
    case = make_case(seconds=2.0)
    records = [
        make_record(
            case, Measurement.of(metrics.LATENCY, [value]), Measurement.of(metrics.AUDIO_SECONDS, [2.0]), round=n
        )
        for n, value in enumerate((0.5, 0.51, 0.53))
    ]
    (grid,) = choose.tables(records, "rtf")
    (figure,) = [cell.text() for row in grid.rows for cell in row.cells]
    assert "±" in figure
    assert figure in Read(notebook_html("run", [grid], "")).cells
    assert figure in text.markdown([grid])
