"""What a chart is before it is drawn: a Vega-Lite specification without look or width, and the values behind it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.intervals import Quantity
from speechmeter.core.metrics import LATENCY, Metric
from speechmeter.core.printable import one_line
from speechmeter.core.types import Record
from speechmeter.report.caveats import rounds_of, study_notes
from speechmeter.report.charts.letters import in_two, wide_px
from speechmeter.report.numbers import counted, figure

if TYPE_CHECKING:
    import altair as alt

Rows = list[dict[str, Any]]
STEP = 24
"""Height of a line of a list, in pixels."""
_MOST_NOTES = 2
"""So many notes are shown at a figure; the run has all of them."""
_STRIP_HEIGHT = 240
_ONE_LINE_PX = 120
"""A longer name of a line is in two: on a phone it would lose its end, by which it differs from the others."""
_HALF_LETTER_PX = 5.5
MOST_LINES = 40
"""A list longer than this is cut, and says so: it would not be read."""

_MEMORY = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))
_SUFFIX = {"s": "s", "flop": "FLOP", "J": "J", "W": "W", "flop/s": "FLOP/s", "op": "op"}
SHAPES = ("circle", "square", "triangle-up", "cross", "diamond", "triangle-down", "triangle-right")
"""Of marks. Seven, beside eight colours: the first pair comes again after 56 lines."""
_SPACED = "replace(format(datum.value, '.3~s'), regexp('([^0-9]?)$'), ' $1') + '{suffix}'"
"""An axis label with a space before its unit: `100 ms`."""
_PLAIN = "format(datum.value / {divisor}, ',~g')"
_PREFIXES = (
    (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"),
)  # fmt: skip
_SHORT, _LONG = 1e-3, 1e4
"""Labels below or from here on would have too many digits."""
_LOG_FROM = 8.0
_SCALE_PADDING = 8
_TICKS = 5
_INTERVAL, _SPREAD = "interval", "spread"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One chart. `columns` name the fields of its rows that a reader sees as a table, with their headings.

    `sampled` figures vary between rounds. `caveats` are what a reader must know before a figure is quoted: they are
    part of the caption on a page, and below the title of a plot. None: those of all records of its source.
    """

    title: str
    caption: str
    spec: Mapping[str, Any]
    columns: tuple[tuple[str, str], ...]
    definitions: tuple[Metric, ...] = ()
    sampled: bool = True
    caveats: tuple[str, ...] | None = None
    trivial: bool = False
    """Whether it shows no more than a table has; the page leaves it out."""

    @property
    def rows(self) -> Rows:
        """The values that are drawn."""
        rows: Rows = self.spec["data"]["values"]
        return rows


def drawn(chart: alt.Chart | alt.LayerChart, rows: Rows, height: int) -> dict[str, Any]:
    """The specification of a chart over these rows, without `config`; a page or a plot adds look and width."""
    spec: dict[str, Any] = chart.to_dict(validate=False)  # the golden tests do that once for all
    spec.pop("config", None)
    spec.pop("$schema", None)  # it changes with the installed Altair
    spec.pop("datasets", None)  # an empty one
    for layer in spec.get("layer", ()):
        layer.pop("data", None)  # an empty one, which would hide the rows
    return {**_in_lines(spec), "height": height, "data": {"values": _in_lines(rows)}}


def _in_lines(value: Any) -> Any:
    """The same with every text in one line: Vega writes names into expressions, in which a line end is an error."""
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, list | tuple):
        return [_in_lines(inner) for inner in value]
    return {key: _in_lines(inner) for key, inner in value.items()} if isinstance(value, dict) else value


def tooltips(fields: Mapping[str, str]) -> list[Any]:
    """What is shown beside a mark: the fields of its row as text, each with its title."""
    import altair as alt

    return [alt.Tooltip(f"{field}:N", title=title) for field, title in fields.items()]


def reading(found: Quantity, factor: float = 1.0) -> dict[str, Any]:
    """The fields of a row that hold one figure; six digits are more than a drawing can show."""
    bounds = {"value": found.value, "low": found.low, "high": found.high}
    return {
        **{name: None if bound is None else six(bound / factor) for name, bound in bounds.items()},
        "text": figure(found),
    }


def spread_reading(records: Sequence[Record], metric: Metric, factor: float = 1.0) -> dict[str, Any] | None:
    """As `reading`, of a case, and what its bar is; None where there is no figure.

    From two rounds on it is the interval over rounds. Of one round there is none: the figure is then the mean of its
    samples, and the bar one standard deviation either side.
    """
    found = estimate(records, metric)
    if found is None:
        return None
    bar = _INTERVAL if found.low is not None else ""
    if not bar and found.rounds == 1 and not metric.exact:
        spread = estimate(records, metric, statistic="mean-sd")
        found, bar = (spread, _SPREAD) if spread is not None else (found, bar)
    return {**reading(found, factor), "bar": bar, "rounds": found.rounds, "samples": found.samples_per_round}


def bars_words(rows: Rows, *, drawn: bool = True) -> str:
    """What the points and bars of rows by `spread_reading` are, for a caption; empty where there are no bars."""
    parts = [
        f"{with_bars if drawn else without} {_span([row[of] for row in rows if row.get('bar') == bar], unit)}"
        for bar, with_bars, without, of, unit in (
            (_INTERVAL, "bars are 95 % intervals over", "points are geometric means over", "rounds", "round"),
            (_SPREAD, "with one round, points and bars are mean ± standard deviation of",
             "with one round, points are means of", "samples", "sample"),
        )
        if any(row.get("bar") == bar for row in rows)
    ]  # fmt: skip
    bare = any(row["value"] is not None and not row.get("bar") for row in rows) and parts and drawn
    return "; ".join([*parts, *(["a point without a bar has a single sample"] if bare else [])])


def above_zero(rows: Rows) -> tuple[Rows, str]:
    """(rows for a logarithmic axis, what to say of them): a bar that reaches zero ends below all that is drawn."""
    positive = [value for value in bounds(rows) if value > 0]
    values = [row["value"] for row in rows if row["value"] is not None]
    below = [row["low"] is not None and row["low"] <= 0 for row in rows]
    if not any(below) or not far_apart(values):
        return rows, ""
    bottom = six(min(positive) / 1.5)
    made = [{**row, "low": bottom} if cut else row for row, cut in zip(rows, below, strict=True)]
    return made, "a bar that touches the bottom edge extends to 0 or below, which a logarithmic axis cannot show"


def _span(counts: Sequence[int], unit: str) -> str:
    low, high = min(counts), max(counts)
    return counted(high, unit) if low == high else f"{low} to {high} {unit}s"


def six(value: float) -> float:
    """Six significant digits."""
    return float(f"{value:.6g}")


@dataclass(frozen=True, kw_only=True)
class Unit:
    """How values of a metric are shown on an axis: divided by `factor`, with a heading and labels of their own."""

    factor: float
    heading: str
    labels: str

    def axis(self, values: Sequence[float], **changes: Any) -> Any:
        """An axis in this unit for these values, which are divided by the factor already."""
        import altair as alt

        marks = {"values": ticks(values)} if far_apart(values) else {"tickCount": _TICKS}
        return alt.Axis(title=self.heading, labelExpr=self.labels, **marks, **changes)


def unit_of(metric: Metric, values: Sequence[float], title: str = "") -> Unit:
    """The unit in which these values of a metric are read most easily.

    One unit for the whole axis, behind its title. Where values are too far apart for that, each label has its own.
    """
    heading = title or metric.title
    largest = max(map(abs, values), default=0.0)
    if metric.unit == "bytes":
        factor, name = next((step for step in _MEMORY if largest >= step[0]), _MEMORY[-1])
        return Unit(factor=float(factor), heading=f"{heading} [{name}]", labels=_PLAIN.format(divisor=1))
    if metric.unit in _SUFFIX:
        return _prefixed(heading, _SUFFIX[metric.unit], values, largest)
    unit = "" if metric.unit == "1" else f" [{metric.unit}]"
    labels = "format(datum.value, '.3~s')" if largest >= _LONG else _PLAIN.format(divisor=1)
    return Unit(factor=1.0, heading=heading + unit, labels=labels)


def _prefixed(heading: str, suffix: str, values: Sequence[float], largest: float) -> Unit:
    """An axis in `ms` or `GFLOP`; the values themselves stay in the unit without a prefix.

    Where they are not known yet, or too far apart, each label has its own.
    """
    if not values:
        return Unit(factor=1.0, heading=heading, labels=_SPACED.format(suffix=suffix))
    divisor, prefix = next((step for step in _PREFIXES if largest >= step[0]), _PREFIXES[-1])
    if suffix == "s" and divisor > 1:
        divisor, prefix = 1.0, ""
    least = min((value for value in values if value > 0), default=divisor)
    if least / divisor < _SHORT or largest / divisor >= _LONG:
        return Unit(factor=1.0, heading=heading, labels=_SPACED.format(suffix=suffix))
    return Unit(factor=1.0, heading=f"{heading} [{prefix}{suffix}]", labels=_PLAIN.format(divisor=f"{divisor:g}"))


def scale_of(values: Sequence[float], *, linear: bool = False, **changes: Any) -> Any:
    """A logarithmic scale where values are far apart, else a linear one from 0."""
    import altair as alt

    if far_apart(values) and not linear:
        return alt.Scale(type="log", nice=False, padding=_SCALE_PADDING, **changes)
    if values and min(values) >= 0 and max(values) > 0:
        return alt.Scale(domain=[0, six(_nice(max(values)))], nice=False, **changes)
    return alt.Scale(zero=True, **changes)


def pixel(value: float, values: Sequence[float], length_px: float, *, linear: bool = False) -> float:
    """Where a value is on an axis of this length, from its beginning, by the rules of `scale_of`."""
    low, high, log = _ends(values, length_px, linear)
    at = math.log(value) if log else value
    return (at - low) / (high - low) * length_px if high > low else length_px / 2


def at_pixel(pixel: float, values: Sequence[float], length_px: float) -> float:
    """The value at this distance in pixels from the low end."""
    low, high, log = _ends(values, length_px, linear=False)
    at = low + pixel / length_px * (high - low) if high > low else low
    return math.exp(at) if log else at


def _ends(values: Sequence[float], length_px: float, linear: bool) -> tuple[float, float, bool]:
    if linear or not far_apart(values):
        return 0.0, _nice(max(values)), False
    low, high = math.log(min(values)), math.log(max(values))
    beyond = (high - low) * _SCALE_PADDING / max(1.0, length_px - 2 * _SCALE_PADDING)
    return low - beyond, high + beyond, True


def _nice(most: float) -> float:
    """Where a linear axis from 0 ends: at a round number from the largest value on."""
    if most <= 0:
        return 1.0
    step = 10.0 ** math.floor(math.log10(most / 2))
    step = next(step * part for part in (1, 2, 5, 10) if most / (step * part) <= _TICKS * 2)
    return math.ceil(most / step - 1e-9) * step


def with_zero(values: Sequence[float]) -> float | None:
    """Where some values are zero and the others far apart: from where on an axis is logarithmic. None otherwise."""
    positive = [value for value in values if value > 0]
    return min(positive) if min(values, default=1.0) == 0 and far_apart(positive) else None


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


def caveats_of(records: Sequence[Record], *, sampled: bool = True) -> tuple[str, ...]:
    """What is to be said of a figure made of these records: that they are of one round, and their first notes."""
    rounds = ("one round: no interval",) if sampled and rounds_of(records)[1] == 1 else ()
    return (*rounds, *study_notes(records, _MOST_NOTES)[:_MOST_NOTES])


def log_words(values: Sequence[float]) -> str:
    """What a caption says where `scale_of` makes the axis of these values logarithmic; else empty."""
    return "the axis is logarithmic" if far_apart(values) else ""


def interval_words(rows: Rows, words: str, low: str = "low") -> str:
    """What a caption says of intervals where some are drawn: `words`, and which figures have none. Else empty."""
    shown = [row.get(low) in (None, "") for row in rows if row.get("value") is not None]
    if not shown or all(shown):
        return ""
    return f"{words}; a value without an interval is from a single round" if any(shown) else words


def sentence(*parts: str) -> str:
    """Parts of a caption as one sentence; empty ones are left out."""
    text = "; ".join(part for part in parts if part)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def shortened(labels: Mapping[str, str]) -> dict[str, str]:
    """Labels of cases without the parts that all of them have."""
    split = {key: label.split(" · ") for key, label in labels.items()}
    shared = set.intersection(*map(set, split.values())) if len(split) > 1 else set()
    return {
        key: " · ".join(part for part in parts if part not in shared) or labels[key] for key, parts in split.items()
    }


def names_of(titles: Iterable[str]) -> dict[str, str]:
    """Titles of groups without what all of them have; of a single one the name of its model."""
    labels = {title: title for title in titles}
    return shortened(labels) if len(labels) > 1 else {title: title.partition(" · ")[0] for title in labels}


def names_axis(names: Iterable[str], **changes: Any) -> Any:
    """The axis of a list, with a name at each line; in two lines of text if some name of several parts is long."""
    import altair as alt

    split = {name: in_two(name) for name in map(one_line, names) if " · " in name}
    if all(wide_px(name) <= _ONE_LINE_PX for name in split):
        split = {}
    usual: dict[str, Any] = {"ticks": False, "domain": False, "labelPadding": 8, "labelOverlap": False}
    if split:
        lines = f"{json.dumps(split, ensure_ascii=False)}[datum.value]"
        up = {"condition": {"test": lines, "value": -_HALF_LETTER_PX}, "value": 0}
        usual |= {"labelExpr": f"{lines} || datum.value", "labelOffset": up, "labelLineHeight": 2 * _HALF_LETTER_PX}
    return alt.Axis(**{**usual, **changes})


def arrows(rows: Rows, layer: alt.Chart, towards: str, **shift: float) -> list[alt.Chart]:
    """The layer with an arrow at rows that are `open`, of which only a lower bound is known; nothing where none is."""
    if not any(row.get("open") for row in rows):
        return []
    shown = layer.transform_filter("datum.open")
    return [shown.mark_point(shape=f"triangle-{towards}", filled=True, size=40, opacity=1, **shift)]


def intervals(rows: Rows, layer: alt.Chart, low: str = "low") -> list[alt.Chart]:
    """The layer with the rows that have an interval; nothing where none has."""
    known = any(row.get(low) is not None for row in rows)
    return [layer.transform_filter(f"isValid(datum.{low})")] if known else []


def samples_strip() -> dict[str, Any]:
    """Raw samples of one case in the order they were taken, round by round, so that drift and outliers show.

    The page fills in the rows of the case that is chosen. They hold `order`, `round`, `turn`, `value`; one of them has
    `mean`, `low` and `high` of the figure, drawn behind the samples as a band. Rounds differ by their `turn`, not by
    the colours of models.
    """
    import altair as alt

    axis = unit_of(LATENCY, []).axis([])
    scale = alt.Scale(zero=False, padding=6)
    across = alt.Axis(tickMinStep=1, grid=False, format="d", title="samples in the order they were taken")
    x = alt.X("order:Q", axis=across, scale=alt.Scale(zero=False, padding=8))
    tooltip, turns = tooltips({"round": "round", "text": "sample"}), ["odd", "even"]
    samples = alt.Chart().transform_filter("isValid(datum.value)").encode(x=x, tooltip=tooltip)
    whole = alt.Chart().transform_filter("isValid(datum.mean)")
    chart = alt.layer(
        whole.mark_rect(opacity=0.18, style="quiet").encode(y=alt.Y("low:Q", scale=scale, axis=axis), y2="high:Q"),
        whole.mark_rule(strokeDash=[4, 4], style="quiet").encode(y=alt.Y("mean:Q", scale=scale, axis=axis)),
        samples.mark_point(filled=True, size=30, opacity=0.9).encode(
            y=alt.Y("value:Q", scale=scale, axis=axis),
            color=alt.Color("turn:N", legend=None, scale=alt.Scale(domain=turns, range=["var(--ink)", "var(--quiet)"])),
            shape=alt.Shape("turn:N", legend=None, scale=alt.Scale(domain=turns, range=["circle", "square"])),
        ),
    )
    return drawn(chart, [], _STRIP_HEIGHT)
