"""Golden files of the specification of every kind of chart, each held to the schema of Vega-Lite."""

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import report_runs
from golden_files import check_golden

from speechmeter.report.charts.figure import samples_strip
from speechmeter.report.plot import chart_figures, figures_of
from speechmeter.report.sources import read_sources
from speechmeter.report.views import CHARTS

alt = pytest.importorskip("altair", reason="altair is not installed: pip install 'speechmeter[report]'")
GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    return read_sources(map(str, report_runs.full(tmp_path_factory.mktemp("runs"))))


PLOTS = ("scaling", "scaling:batch", "parameters")
"""Kinds whose figure for a paper is not one of the page."""


def _of_page(chart, sources):
    """What only the page shows of parameters has a golden file of its own."""
    return chart_figures(replace(chart, on_page=None), sources, page=True)


@pytest.fixture(scope="module")
def drawn(sources):
    """The first figures of every kind, and those of a file where they differ."""
    made = {name: list(islice(_of_page(chart, sources), 6)) for name, chart in CHARTS.items()}
    return made | {f"plot-{kind.replace(':', '-')}": figures_of(sources[:1], kind) for kind in PLOTS}


ALL = (*CHARTS, *(f"plot-{kind.replace(':', '-')}" for kind in PLOTS))


def text(specs):
    return json.dumps(specs, indent=1, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("kind", CHARTS)
def test_golden(kind, drawn):
    assert drawn[kind]
    first = drawn[kind][0]
    check_golden(GOLDEN / f"{kind}.json", text({first.title: first.spec}))


def test_golden_of_the_samples_of_a_case():
    check_golden(GOLDEN / "samples.json", text(samples_strip()))


@pytest.mark.parametrize("kind", ALL)
def test_every_specification_is_valid(kind, drawn):
    assert drawn[kind]
    for figure in drawn[kind][:2]:
        plain = {**figure.spec, "data": {"values": figure.rows[:1]}}
        (alt.LayerChart if "layer" in plain else alt.Chart).from_dict(plain, validate=True)


@pytest.mark.parametrize("kind", ALL)
def test_every_column_of_a_figures_table_is_a_field_of_its_rows(kind, drawn):
    assert drawn[kind]
    for figure in drawn[kind]:
        for field, heading in figure.columns:
            assert heading and any(field in row for row in figure.rows), (figure.title, field)
