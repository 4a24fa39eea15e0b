"""What a metric means: in one line below a table, and in full for `speechmeter show --explain METRIC`."""

from __future__ import annotations

from collections.abc import Sequence

from speechmeter.analysis.metric_names import find_metric, metric_named
from speechmeter.core.metrics import Combination, Metric
from speechmeter.core.types import Record
from speechmeter.report.views import VIEWS

_BETTER = {"lower": "lower is better", "higher": "higher is better", "neither": "neither direction is better"}
_COMBINED: dict[Combination, str] = {
    "typical": "the geometric mean of the medians of the rounds, with a 95 % interval over rounds",
    "divided": (
        "the geometric mean of the medians of the rounds, with a 95 % interval over rounds. Each "
        "stage gets a share of the value of the call, in proportion to its time, so the stages add "
        "up to the call"
    ),
    "mean": "the arithmetic mean over all calls and rounds. Therefore the rows of a table add up",
    "conversations": "the median over all conversations of all rounds, with a 95 % interval by resampling utterances, "
    "and rounds from 5 on",
    "pooled": "one sum divided by another, over all conversations of all rounds, with a 95 % interval over utterances, "
    "and rounds from 5 on",
    "stated": "the one in the file of the other tool, with the interval that the file has; of several files of one "
    "case, the geometric mean with a 95 % interval over the files",
    "ratio": "one arithmetic mean divided by another, over the same calls and rounds",
}


def definition_line(metric: Metric) -> str:
    """`latency.v1 [s]: wall time of one call.`"""
    return f"{metric.id} [{metric.unit}]: {metric.definition}."


def explain(name: str, records: Sequence[Record] = ()) -> str:
    """The full definition of a metric, or what a view such as `growth` shows, in lines.

    `records` decide what `memory` means, and may hold a metric of a plug-in that is not installed. Raises InputError
    for a name that is neither a metric nor a view.
    """
    view = next((one for one in VIEWS if one.name == name), None)
    if view is not None and find_metric(name, records) is None:
        return f"{name}: a table. {view.summary}"
    metric = metric_named(name, records, also=[one.name for one in VIEWS])
    unit = "without a unit" if metric.unit == "1" else f"in {metric.unit}"
    lines = [f"{metric.title}: {metric.id}, {unit}, {_BETTER[metric.direction]}"]
    lines += [f"In short: {metric.short}."] if metric.short else []
    lines.append(f"Definition: {metric.formula}.")
    made = "a count and is the same in every round" if metric.exact else _COMBINED[metric.combined]
    return "\n".join([*lines, f"A value in a table is {made}."])
