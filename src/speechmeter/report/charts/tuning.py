"""What a tuning chose: its gain, and what each change adds alone and removed, as dots with intervals."""

from __future__ import annotations

from typing import Any

from speechmeter.analysis.tuned import state_of
from speechmeter.analysis.tuning_answer import Answer, Change, answer_of
from speechmeter.core.metrics import Metric
from speechmeter.core.tuning import GOALS
from speechmeter.report.charts.figure import Figure, bounds, six, unit_of
from speechmeter.report.charts.marks import SERIES, cut, dots
from speechmeter.report.sources import Source
from speechmeter.report.tuning import change_words, headline, words_of

_ALONE, _REMOVED, _WHOLE = "alone, to the default", "removed from the chosen", "the whole change"


def figures(source: Source) -> list[Figure]:
    """One figure of ratios to the default, where a tuning has chosen another configuration."""
    if source.tuning is None:
        return []
    answer = answer_of(state_of(source.records, source.tuning))
    if answer.chosen is None or answer.gain is None:
        return []
    goal = GOALS[answer.goal]
    metric = goal.shown or goal.metrics[0]
    rows, left_out = cut(_rows(answer))
    unit = unit_of(_ratio_of(metric), bounds(rows))
    return [
        Figure(
            title=headline(answer)[0],
            caption="ratios, new by old, with 95 % intervals over paired fresh rounds" + left_out,
            spec=dots(rows, unit, series="change", ordered=(_WHOLE, _ALONE, _REMOVED)),
            columns=(("label", "change"), (SERIES, "made"), ("text", f"change of {metric.title}")),
            definitions=(metric,),
        )
    ]


def _ratio_of(metric: Metric) -> Metric:
    return Metric(
        id=f"ratio_of_{metric.id}", unit="1", direction="neither", title=f"ratio of {metric.title}", formula="new / old"
    )


def _rows(answer: Answer) -> list[dict[str, Any]]:
    assert answer.chosen is not None and answer.gain is not None
    rows = [_row(words_of(answer.chosen), _WHOLE, answer.gain)]
    for one in answer.contributions:
        label = f"{one.axis} {one.value}"
        if one.alone is not None:
            rows.append(_row(label, _ALONE, one.alone))
        if one.removed is not None:
            rows.append(_row(label, _REMOVED, one.removed))
    return rows


def _row(label: str, series: str, change: Change) -> dict[str, Any]:
    ends = {"value": change.ratio, "low": change.low, "high": change.high}
    return {
        "label": label, SERIES: series, "text": change_words(change),
        **{name: None if value is None else six(value) for name, value in ends.items()},
    }  # fmt: skip
