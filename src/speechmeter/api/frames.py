"""Figures as rows of a data frame, one a figure: what `speechmeter query` has as the table `estimates`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, Literal

from speechmeter.analysis.estimate import Estimate
from speechmeter.analysis.metric_names import Figures, metric_named
from speechmeter.analysis.selecting import MODEL, by_case
from speechmeter.core.errors import InputError
from speechmeter.core.plugins import nearest
from speechmeter.core.types import Record

Library = Literal["pandas", "polars"]
_LIBRARIES = ("pandas", "polars")
_FIGURE = (
    "metric", "metric_id", "unit", "scope", "value", "low", "high", "rounds", "failed", "samples", "statistic",
)  # fmt: skip
_NUMBERS = ("value", "low", "high")


def frame_of(records: Sequence[Record], metric: str | None, library: str) -> Any:
    """A data frame with one row a figure: the model, the input, the axes, the figure with its interval, its unit.

    Of a metric by name, or of all that the records hold. Raises InputError for a library that is not installed, and for
    a name that no metric has.
    """
    frames = _library(library)
    rows = list(figure_rows(records, metric))
    axes = dict.fromkeys(name for row in rows for name, value in row.items() if value is not None)
    columns = [*({MODEL: None, "workload": None} | axes), *_FIGURE, "case_id"]
    columns = [name for index, name in enumerate(columns) if name not in columns[index + 1 :]]
    data = {name: [row.get(name) for row in rows] for name in columns}
    if library == "pandas":
        return frames.DataFrame(data).astype(dict.fromkeys(_NUMBERS, float))
    # an axis may hold numbers and words, which polars refuses unless it may make texts of them
    return frames.DataFrame(data, schema_overrides=dict.fromkeys(_NUMBERS, frames.Float64), strict=False)


def figure_row(scope: str, figure: Estimate) -> dict[str, Any]:
    """The columns of one figure. None for what a column cannot hold: a quotient of numbers that are nearly 0."""
    return {
        "metric": figure.metric.id, "unit": figure.metric.unit, "scope": scope, "statistic": figure.statistic,
        "value": _finite(figure.value), "low": _finite(figure.low), "high": _finite(figure.high),
        "rounds": figure.rounds, "failed": figure.failed, "samples": figure.samples_per_round,
    }  # fmt: skip


def figure_rows(records: Sequence[Record], metric: str | None = None) -> Iterator[dict[str, Any]]:
    """A row a figure, of a metric by name or of all: the model, the input, the axes, then the columns of the figure."""
    if metric is not None:
        metric_named(metric, records)  # of a word that no case has, an error instead of an empty frame
    figures = Figures()
    for group in by_case(records).values():
        case = group[0].case
        asked = None if metric is None else metric_named(metric, group, among=records)
        labels = {MODEL: case.subject.name, "workload": case.workload.name, **case.axes, "case_id": case.id}
        for scope, figure in figures.of(group):
            if asked is None or figure.metric == asked:
                found = figure_row(scope, figure)
                yield {**labels, **found, "metric": figure.metric.name, "metric_id": figure.metric.id}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _library(name: str) -> Any:
    if name not in _LIBRARIES:
        raise InputError(f"there is no library {name!r}", key="library", fix=nearest(name, list(_LIBRARIES)))
    try:
        return import_module(name)
    except ImportError:
        raise InputError(f"a data frame needs {name}, which is not installed", fix=f"pip install {name}") from None
