"""What a chart is before it is drawn: a Vega-Lite specification without look or width, and the values behind it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from speechmeter.analysis.estimate import Estimate
from speechmeter.core.metrics import Metric
from speechmeter.report.numbers import figure

if TYPE_CHECKING:
    import altair as alt

Rows = list[dict[str, Any]]
STEP = 24
"""Height of a line of a list, in pixels."""
MOST_LINES = 40
"""A list longer than this is cut, and says so: it would not be read."""

_MEMORY = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))
_SUFFIX = {"s": "s", "flop": "FLOP", "J": "J", "W": "W", "flop/s": "FLOP/s", "op": "op"}
_LOG_FROM = 8.0
_TICKS = 5


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One chart. `columns` name the fields of its rows that a reader sees as a table, with their headings."""

    title: str
    caption: str
    spec: Mapping[str, Any]
    columns: tuple[tuple[str, str], ...]
    definitions: tuple[Metric, ...] = ()

    @property
    def rows(self) -> Rows:
        """The values that are drawn."""
        rows: Rows = self.spec["data"]["values"]
        return rows


def drawn(chart: alt.Chart | alt.LayerChart, rows: Rows, height: int) -> dict[str, Any]:
    """The specification of a chart over these rows, without `config`; a page or a plot adds look and width."""
    spec: dict[str, Any] = chart.to_dict(validate=False)  # the golden tests do that once for all
    spec.pop("config", None)
    spec.pop("$schema", None)  # it changes with the installed Altair; readers are told the language
    for layer in spec.get("layer", ()):
        layer.pop("data", None)  # an empty one, which would hide the rows
    return {**spec, "height": height, "data": {"values": rows}}


def reading(estimate: Estimate, factor: float = 1.0) -> dict[str, Any]:
    """The fields of a row that hold one figure; six digits are more than any eye tells apart."""
    bounds = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    return {
        **{name: None if bound is None else six(bound / factor) for name, bound in bounds.items()},
        "text": figure(estimate),
    }


def six(value: float) -> float:
    """Six significant digits."""
    return float(f"{value:.6g}")


@dataclass(frozen=True, kw_only=True)
class Unit:
    """How values of a metric stand on an axis: divided by `factor`, with a heading and labels of their own."""

    factor: float
    heading: str
    labels: str

    def axis(self, values: Sequence[float], **changes: Any) -> Any:
        """An axis in this unit for these values, which are divided by the factor already."""
        import altair as alt

        marks = {"values": ticks(values)} if far_apart(values) else {"tickCount": _TICKS}
        return alt.Axis(title=self.heading, labelExpr=self.labels, **marks, **changes)


def unit_of(metric: Metric, values: Sequence[float], title: str = "") -> Unit:
    """The unit in which these values of a metric are read most easily."""
    heading = title or metric.title
    if metric.unit == "bytes":
        largest = max(map(abs, values), default=0.0)
        factor, name = next((step for step in _MEMORY if largest >= step[0]), _MEMORY[-1])
        return Unit(factor=float(factor), heading=f"{heading} [{name}]", labels="'' + datum.value")
    if metric.unit in _SUFFIX:
        return Unit(factor=1.0, heading=heading, labels=f"format(datum.value, '.3~s') + '{_SUFFIX[metric.unit]}'")
    unit = "" if metric.unit == "1" else f" [{metric.unit}]"
    large = max(map(abs, values), default=0.0) >= 1e4
    labels = "format(datum.value, '.3~s')" if large else "'' + datum.value"
    return Unit(factor=1.0, heading=heading + unit, labels=labels)


def scale_of(values: Sequence[float], **changes: Any) -> Any:
    """A logarithmic scale where values are far apart, else a linear one from 0."""
    import altair as alt

    if far_apart(values):
        return alt.Scale(type="log", nice=False, padding=8, **changes)
    return alt.Scale(zero=True, **changes)


def far_apart(values: Sequence[float]) -> bool:
    """Whether values are positive and the largest is many times the least."""
    return min(values, default=0.0) > 0 and max(values) / min(values) > _LOG_FROM


def ticks(values: Sequence[float]) -> list[float]:
    """Round numbers for a logarithmic axis: 1, 2, 5 over one decade or so, 1, 3 over three, then powers of ten."""
    low, high = math.log10(min(values)), math.log10(max(values))
    steps = (1, 2, 5) if high - low < 1.5 else (1, 3) if high - low < 3 else (1,)
    decades = range(math.floor(low), math.ceil(high) + 1)
    found = [step * 10.0**decade for decade in decades for step in steps]
    return [six(value) for value in found if low - 0.05 <= math.log10(value) <= high + 0.05]


def bounds(rows: Rows) -> list[float]:
    """Every value and bound of some rows, for a scale to hold."""
    return [row[name] for row in rows for name in ("value", "low", "high") if row.get(name) is not None]


def shortened(labels: Mapping[str, str]) -> dict[str, str]:
    """Labels of cases without the parts that all of them have."""
    split = {key: label.split(" · ") for key, label in labels.items()}
    shared = set.intersection(*map(set, split.values())) if len(split) > 1 else set()
    return {
        key: " · ".join(part for part in parts if part not in shared) or labels[key] for key, parts in split.items()
    }


def arrows(rows: Rows, layer: alt.Chart, towards: str, **place: float) -> list[alt.Chart]:
    """The layer with an arrow at rows that are `open`, of which only a lower bound is known; nothing where none is."""
    if not any(row.get("open") for row in rows):
        return []
    shown = layer.transform_filter("datum.open")
    return [shown.mark_point(shape=f"triangle-{towards}", filled=True, size=40, opacity=1, **place)]


def intervals(rows: Rows, layer: alt.Chart, low: str = "low") -> list[alt.Chart]:
    """The layer with the rows that have an interval; nothing where none has."""
    known = any(row.get(low) is not None for row in rows)
    return [layer.transform_filter(f"isValid(datum.{low})")] if known else []
