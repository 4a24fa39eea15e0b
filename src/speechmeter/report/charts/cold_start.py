"""Cold start in three figures: load, first call, steady call."""

from __future__ import annotations

from speechmeter.analysis.estimate import estimate
from speechmeter.core import metrics
from speechmeter.report.charts.dots import SERIES, cut, dots
from speechmeter.report.charts.figure import Figure, bounds, interval_words, reading, sentence, shortened, unit_of
from speechmeter.report.sources import Source

_PHASES = {"load": metrics.LATENCY_LOAD, "first call": metrics.LATENCY_FIRST, "steady call": metrics.LATENCY}


def figures(source: Source) -> list[Figure]:
    """One figure with a line a case, where load or first call were timed."""
    labels = shortened(source.labels)
    rows, left_out = cut(
        {"label": labels[key], SERIES: phase, **reading(found)}
        for key, group in source.cases.items()
        for phase, metric in _PHASES.items()
        if (found := estimate(group, metric)) is not None
    )
    if all(row[SERIES] == "steady call" for row in rows):
        return []
    return [
        Figure(
            title="from nothing to steady calls",
            caption=sentence(
                "loading, the first call and a steady call of each case",
                interval_words(rows, "with 95 % intervals over rounds"),
            )
            + left_out,
            spec=dots(rows, unit_of(metrics.LATENCY, bounds(rows), "time"), series="phase", ordered=tuple(_PHASES)),
            columns=(("label", "case"), (SERIES, "phase"), ("text", "time")),
            definitions=tuple(_PHASES.values()),
        )
    ]
