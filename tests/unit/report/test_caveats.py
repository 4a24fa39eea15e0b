"""What is said beside figures in every format: that they are of one round, and what models and input tell of them."""

import io
from pathlib import Path

import pytest
import report_runs
from conftest import make_case, make_record
from rich.console import Console

from speechmeter.core import metrics
from speechmeter.core.types import Measurement
from speechmeter.report import choose
from speechmeter.report.caveats import ONE_ROUND, SOME_SINGLE, study_notes
from speechmeter.report.grids import grids
from speechmeter.report.terminal import draw
from speechmeter.report.text import FORMATS

SEVERAL = report_runs.grid("alpha")
ONCE = report_runs.once(SEVERAL)
VIEWS = ("rtf", "latency", "memory", "summary", "cold-start", "stages", "cascades", "energy")


def shown(records, word, format):
    tables = choose.tables(records, word)
    if format != "table":
        return FORMATS[format](tables)
    console = Console(file=io.StringIO(), width=200)
    draw(tables, console)
    return console.file.getvalue()


def visible(text, format):
    """What a reader of the document sees: comments of LaTeX are none of it."""
    return "\n".join(line for line in text.splitlines() if format != "latex" or not line.startswith("%"))


@pytest.mark.parametrize("format", ["table", "markdown", "latex", "json"])
@pytest.mark.parametrize("word", VIEWS)
def test_one_round_and_random_weights_are_said_beside_the_figures(word, format):
    text = visible(shown(ONCE, word, format), format)
    assert ONE_ROUND in text and report_runs.RANDOM in text
    several = visible(shown(SEVERAL, word, format), format)
    assert "one round" not in several and report_runs.RANDOM not in several


def test_a_table_of_what_is_counted_says_nothing_of_rounds():
    (table,) = choose.tables(ONCE, "parameters")
    assert table.caveats == (report_runs.RANDOM,)


def test_figures_of_one_round_among_others_are_named_as_such():
    mixed = [record for record in SEVERAL if record.round == 0 or record.case.axes["batch"] == 4]
    (table,) = choose.tables(mixed, "latency")
    assert table.caveats == (SOME_SINGLE,)


def test_notes_of_some_models_name_them_and_those_of_most_cases_come_first():
    def told(name, *notes, **axes):
        items = Measurement.of(metrics.ITEMS, [1.0], notes={"notes": list(notes)})
        return make_record(make_case(name, **axes), items)

    records = [
        told("a", "rare", "random weights", seconds=1.0),
        told("a", "random weights", seconds=2.0),
        told("b", "random weights", "8-bit", seconds=1.0),
        told("c", "8-bit", seconds=1.0),
    ]
    assert study_notes(records) == ["a, b: random weights", "b, c: 8-bit", "a: rare"]
    assert study_notes(records, most=1) == ["a, b: random weights", "and 2 more notes in the records"]
    assert study_notes(records[:2]) == ["random weights", "rare"]


def test_an_older_record_has_its_notes_at_the_load():
    load = Measurement.of(metrics.LATENCY_LOAD, [1.0], notes={"notes": ["random weights"]})
    assert study_notes([make_record(make_case(), load)]) == ["random weights"]


def test_notes_on_intervals_are_kept_where_there_are_some():
    quality, once = (
        choose.tables(records, "quality")[0]
        for records in (report_runs.systems(), report_runs.once(report_runs.systems()))
    )
    assert "±: half of the 95 % interval over rounds." in quality.notes
    assert not [note for note in once.notes if note.startswith("±")]
    assert any(note.startswith("[…] of WER: 95 % interval, by ") for note in once.notes)
    assert not any(
        "±" in note
        for table in choose.tables(report_runs.once(report_runs.systems()), "utterances")
        for note in table.notes
    )


@pytest.mark.parametrize("kind", ["grid", "scaling", "cold-start", "energy", "stages"])
def test_a_plot_says_below_its_title_what_the_page_says_in_its_caption(tmp_path, kind):
    pytest.importorskip("altair", reason="altair is not installed: pip install 'speechmeter[report]'")
    from speechmeter.report.plot import chart_figures, specification
    from speechmeter.report.sources import read_sources
    from speechmeter.report.views import CHARTS

    for name, records, said in (
        ("once", ONCE, ["one round: no interval", report_runs.RANDOM]),
        ("several", SEVERAL, []),
    ):
        run: Path = report_runs.write(tmp_path / name, records, report_runs.CPU)
        figures = chart_figures(CHARTS[kind], read_sources([str(run)]), page=True)
        assert figures
        for figure in figures:
            subtitle = specification(figure, 150)["title"].get("subtitle", [])
            assert " ".join(subtitle) == " ".join(said)


@pytest.mark.parametrize(
    ("batches", "busy", "line"),
    [
        ((1, 2), (14, 65), "warning: 1 s × 1, 1 s × 2: another process: 14 to 65% of the cores"),
        ((1, 2, 4, 8, 16), (9, 9, 9, 9), "warning: 4 of 5 cases: another process: 9% of the cores"),
        ((1,), (50,), "warning: another process: 50% of the cores"),
    ],
)
def test_warnings_that_differ_in_their_numbers_alone_are_one_line(batches, busy, line):
    texts = [(f"another process: {share}% of the cores",) for share in busy] + [()] * (len(batches) - len(busy))
    records = [
        make_record(make_case(seconds=1.0, batch=batch), Measurement.of(metrics.MEMORY_CPU_PEAK, [1.0]), warnings=text)
        for batch, text in zip(batches, texts, strict=True)
    ]
    (table,) = grids(records, metrics.MEMORY_CPU_PEAK)
    assert [note for note in table.notes if note.startswith("warning")] == [line]
