"""Tables of the documentation that are made from the code say what the code says."""

import re
from pathlib import Path

import pytest
import tables

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", tables.TABLES)
def test_a_page_has_the_tables_that_the_code_makes_now(page):
    assert (DOCS / page).read_text() == tables.filled(page), "run `python docs/tables.py`"


def test_every_metric_of_every_meter_has_a_line():
    from speechmeter.core import metrics, plugins

    own = {metric.id for name in plugins.names(plugins.METERS) for metric in plugins.meter(name).metrics}
    named = {id for line in tables.metric_list().splitlines() for id in re.findall(r"`(.+?)`", line.partition(": ")[0])}
    assert own | {metrics.LATENCY.id} <= named


def test_every_live_metric_is_on_its_page():
    page = "".join((DOCS / f"reference/metrics/{name}.md").read_text() for name in ("live", "speech"))
    assert {name for name in tables.live_metrics().values() if f"`{name}`" not in page} == set()
