"""Every chart of every example, as wide as a column of a paper and as on a page: texts can be read."""

import re
from pathlib import Path

import pytest

pytest.importorskip("vl_convert", reason="vl-convert is not installed: pip install 'speechmeter[report]'")

import report_runs
from chart_texts import boxes, cut_off, overlaps

from speechmeter.core.errors import InputError
from speechmeter.report.charts.letters import cut, wide_px, wrapped
from speechmeter.report.plot import COLUMN_MM, chart_figures, encoded, figures_of
from speechmeter.report.sources import read_sources
from speechmeter.report.views import CHARTS

RUNS = sorted((Path(__file__).parents[4] / "examples" / "runs").iterdir())
MOST = 5
"""Of the figures of a kind: the others are alike."""
MM_PER_PX = 25.4 / 96
WIDTHS_MM = {"paper": COLUMN_MM, "card": 400 * MM_PER_PX, "page": 620 * MM_PER_PX}


def drawings(sources, kind, width_mm):
    """Each figure of a file, and each one of the page that differs from those."""
    try:
        figures = figures_of(sources, kind)
    except InputError:
        figures = []
    specs = [figure.spec for figure in figures]
    on_page = [one for one in chart_figures(CHARTS[kind], sources, page=True) if one.spec not in specs]
    for figure in (*figures[:MOST], *on_page[:MOST]):
        yield figure, encoded([figure], ".svg", width_mm).decode()


def numbers_on_axes(svg):
    """Labels of axes that are a number."""
    axes = re.findall(r"role-axis-label.*?</g>", svg)
    return [text for axis in axes for text in re.findall(r">([\d.,]+)</text>", axis)]


def labels_cut_short(svg):
    """Labels of axes that have lost their end, by which lines may differ."""
    axes = re.findall(r"role-axis-label.*?</g>", svg)
    return [text for axis in axes for text in re.findall(r">([^<>]*…)<", axis)]


@pytest.mark.parametrize(
    "width", ["paper", *(pytest.param(name, marks=pytest.mark.campaign) for name in ("card", "page"))]
)
@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_the_texts_of_an_example_can_be_read(run, width):
    sources = read_sources([str(run)])
    drawn = [one for kind in CHARTS for one in drawings(sources, kind, WIDTHS_MM[width])]
    assert drawn
    for figure, svg in drawn:
        assert overlaps(svg) == [], figure.title
        assert cut_off(svg) == [], figure.title
        assert labels_cut_short(svg) == [], figure.title
        assert [text for text in numbers_on_axes(svg) if re.search(r"\d{5}", text.partition(".")[0])] == [], (
            figure.title
        )


def test_hostile_names_and_several_machines_are_readable(tmp_path):
    names = [name for name in report_runs.HOSTILE if not name.startswith("x")]  # one of 300 letters is cut
    for run in report_runs.full(tmp_path, names=names):
        sources = read_sources([str(run)])
        drawn = [(kind, *one) for kind in CHARTS for one in drawings(sources, kind, COLUMN_MM)]
        assert drawn
        for kind, figure, svg in drawn:
            assert overlaps(svg) == [] and cut_off(svg) == [], (kind, figure.title)


def test_texts_on_each_other_are_found():
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 60 40"><g transform="translate(5,10)">'
        '<text font-size="11px">86.8 GiB</text><text font-size="11px" transform="translate(20,0)">oom</text>'
        '<text font-size="11px" transform="translate(0,20)">below</text></g></svg>'
    )
    assert overlaps(svg) == [("86.8 GiB", "oom")]
    assert cut_off(svg) == []
    assert cut_off(svg.replace("0 0 60 40", "0 0 40 40")) == ["86.8 GiB", "oom"]
    assert [round(box.left) for box in boxes(svg)] == [5, 25, 5]


def test_widths_are_those_of_dejavu_sans():
    # the advance widths in the font file, at 11 px
    for text, wide in (("86.8 GiB", 47.1), ("inverse real-time", 93.7), ("mmm", 32.1)):
        assert wide <= wide_px(text) <= 1.15 * wide, text


def test_a_text_is_cut_and_wrapped_to_what_fits():
    assert cut("self_attention", 200) == "self_attention"
    assert cut("self_attention", 40, least=3).endswith("…") and cut("self_attention", 20, least=5) == ""
    lines = wrapped("one two three four five six seven eight nine ten", 70)
    assert len(lines) == 3 and lines[2].endswith("…") and all(wide_px(line) <= 70 for line in lines)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_a_caption_speaks_of_intervals_only_where_one_is_drawn(run):
    sources = read_sources([str(run)])
    figures = [one for chart in CHARTS.values() for one in chart_figures(chart, sources, page=True)]
    promised = [one for one in figures if re.search(r"(?<!no )interval", one.caption)]
    for figure in promised:
        bounds = ("low", "cost_low", "interval")
        assert any(row.get(name) not in (None, "") for row in figure.rows for name in bounds), figure.title
    assert bool(promised) == (run.name in ("accuracy-vs-cost", "cpu-grid", "speech-out", "voice-capacity"))


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_every_title_is_a_sentence_of_its_own(run):
    sources = read_sources([str(run)])
    titles = [one.title for chart in CHARTS.values() for one in chart_figures(chart, sources, page=True)]
    assert len(titles) == len(set(titles))
    assert all(title and not title.endswith((".", ":")) for title in titles)
