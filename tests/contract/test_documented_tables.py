"""Tables of the documentation that are made from the code say what the code says."""

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
spec = importlib.util.spec_from_file_location("docs_tables", DOCS / "tables.py")
tables = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tables)


@pytest.mark.parametrize("page", tables.TABLES)
def test_a_page_has_the_tables_that_the_code_makes_now(page):
    assert (DOCS / page).read_text() == tables.filled(page), "run `python docs/tables.py`"


def test_every_metric_of_every_meter_has_a_row():
    from speechmeter.core import metrics, plugins

    own = {metric.id for name in plugins.names(plugins.METERS) for metric in plugins.meter(name).metrics}
    assert own | {metrics.LATENCY.id} <= {row.split("`")[1] for row in tables.metric_table().splitlines()[2:]}
