"""What a metric means, in one line and in full."""

import pytest

from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.report.explaining import definition_line, explain
from speechmeter.report.views import VIEWS


def test_every_definition_below_a_table_is_one_short_line():
    long = [metric.id for metric in metrics.known() if len(metric.definition) > 90 or ";" in metric.definition[90:]]
    assert long == []
    assert definition_line(metrics.RTF) == "rtf.v2 [1]: latency / seconds of audio; below 1 is faster than real time."


@pytest.mark.parametrize("metric", metrics.known(), ids=lambda metric: metric.id)
def test_the_full_definition_of_every_metric_can_be_had(metric):
    text = explain(metric.id)
    assert metric.formula in text and metric.title in text and metric.unit in text.replace("without a unit", "1")


def test_a_view_that_is_no_metric_is_explained_too():
    assert all(explain(view.name) for view in VIEWS)
    assert explain("growth").startswith("growth: a table. ")
    assert "flops.v1" in explain("flops"), "a metric and a view of one name"


def test_a_word_that_is_neither_is_refused_with_the_nearest():
    with pytest.raises(InputError, match="'latncy'; did you mean 'latency'"):
        explain("latncy")
