"""Who is best: by the direction of the metric, and only as far as the intervals show it."""

from speechmeter.analysis.estimate import Estimate
from speechmeter.analysis.leading import lead
from speechmeter.core import metrics


def figure(value, low=None, high=None, metric=metrics.LATENCY):
    return Estimate(metric=metric, value=value, low=low, high=high, rounds=3, samples_per_round=1)


def test_the_least_latency_leads_where_its_interval_is_apart():
    found = lead({"a": figure(2.0, 1.9, 2.1), "b": figure(1.0, 0.9, 1.1), "c": figure(1.2, 1.05, 1.4)})
    assert (found.best, found.close, found.certain) == ("b", ("c",), True)


def test_the_highest_leads_where_higher_is_better_or_the_largest_is_asked_for():
    assert lead({"a": figure(1.0, metric=metrics.RTFX), "b": figure(3.0, metric=metrics.RTFX)}).best == "b"
    assert lead({"a": figure(1.0), "b": figure(3.0)}, largest=True).best == "b"


def test_without_an_interval_nothing_is_certain():
    found = lead({"a": figure(1.0, 0.9, 1.1), "b": figure(2.0)})
    assert found.best == "a" and not found.certain and found.close == ()


def test_equal_figures_are_close_with_and_without_intervals():
    assert lead({"a": figure(1.0), "b": figure(1.0)}).close == ("b",)
    exact = {name: figure(5.0, metric=metrics.PARAMETERS) for name in "ab"}
    assert lead(exact).close == ("b",) and lead(exact).certain


def test_one_figure_leads_nobody():
    assert lead({"a": figure(1.0)}) is None
