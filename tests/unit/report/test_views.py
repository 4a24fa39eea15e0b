"""Views are described once; commands, documentation, charts and the page agree with that description."""

import re
import subprocess
import sys

import pytest

from speechmeter.core import plugins
from speechmeter.report.views import BESIDE, CHARTS, TABLES, VIEWS


def test_no_name_is_given_twice():
    for given in ([view.name for view in (*VIEWS, BESIDE)], CHARTS):
        assert len(given) == len(set(given))
    meters = [view.shown_for for view in VIEWS if view.shown_for]
    assert len(meters) == len(set(meters))


def test_every_meter_of_a_view_is_registered():
    named = {meter for view in (*VIEWS, BESIDE) for meter in (*view.meters, view.or_meter, view.shown_for) if meter}
    assert named <= set(plugins.names(plugins.METERS))


@pytest.mark.parametrize("view", TABLES.values(), ids=TABLES)
def test_the_function_of_a_view_makes_tables_of_no_records(view):
    assert [table.title for table in view.function()([]) if table.rows] == []


@pytest.mark.parametrize("chart", CHARTS.values(), ids=CHARTS)
def test_every_function_of_a_chart_exists(chart):
    pytest.importorskip("altair", reason="altair is not installed: pip install 'speechmeter[report]'")
    assert callable(chart.function(page=True)) and callable(chart.function(page=False))


def test_help_of_show_lists_every_view(command):
    listed = re.findall(r"^ {4}([a-z-]+) {2,}[A-Z]", command("show", "--help").out, re.MULTILINE)
    assert listed == [view.name for view in VIEWS if view.in_show]


def test_help_of_plot_lists_every_chart(command):
    words = re.split(r"[\s,.]+", command("plot", "--help").out)
    assert set(CHARTS) <= set(words)


def test_the_list_of_views_imports_no_other_file_of_the_report():
    code = "import sys, speechmeter.cli.main; print(*[name for name in sys.modules if 'speechmeter.report.' in name])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["speechmeter.report.views"]
