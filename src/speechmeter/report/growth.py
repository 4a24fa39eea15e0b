"""How time, memory and arithmetic grow with seconds and with batch, and where a larger batch stops to pay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from speechmeter.analysis.growth import (
    EXTRAPOLATED,
    LEAST_SIZES,
    NEAR,
    Line,
    expected,
    exponent,
    line_of,
    local_exponent,
    measured_span,
    quadratic_part,
    saturation,
)
from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.plugins import nearest
from speechmeter.core.types import Case, Record
from speechmeter.report.labels import Group, grid_groups
from speechmeter.report.tables import NOT_MEASURED, Cell, Row, Table, list_table, some_interval

AXES = ("seconds", "batch", "max_frames")
_SHOWN = (metrics.LATENCY, metrics.MEMORY_CPU_PEAK, metrics.MEMORY_CUDA_GROWTH, metrics.FLOPS)
_FITTED = (metrics.GROWTH_EXPONENT, metrics.GROWTH_EXPONENT_LOCAL, metrics.QUADRATIC_SHARE)
_WHY = {
    "curve": f"the curve a + b·x + c·x² needs at least {LEAST_SIZES} sizes",
    "poor": "the fitted curve differs from a measured value by more than 10 %",
    "interval": f"the interval of an extrapolated value needs at least {LEAST_SIZES} sizes with two rounds each",
}
Cases = list[tuple[float, list[Record]]]
At = Sequence[tuple[str, float]]
"""Sizes for which to give the figures that are to be expected: (axis, size)."""


@dataclass(frozen=True, kw_only=True)
class Along:
    """Cases that differ in one axis alone; `held` is what they share and others of their title do not, in words."""

    axis: str
    held: str
    cases: Cases

    def text(self, line: Line) -> str:
        """The axis with its range: `seconds 10–160`."""
        return f"{self.axis} {line.sizes[0]:g}–{line.sizes[-1]:g} ({len(line.sizes)})"


def read_at(texts: Sequence[str]) -> list[tuple[str, float]]:
    """Sizes as in `seconds=60`, each once. Raises InputError for another axis or what is no size."""
    found: dict[tuple[str, float], None] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name.strip() not in AXES:
            raise InputError(f"growth is not computed for {name!r}", key="at", fix=nearest(name, list(AXES)))
        try:
            size = float(value)
        except ValueError:
            size = 0.0
        if not 0 < size < float("inf"):
            raise InputError(f"{text!r} is not a size", key="at", fix="for example `at: seconds=60`")
        found[name.strip(), size] = None
    return list(found)


def growth(records: Sequence[Record], at: At = ()) -> list[Table]:
    """For each title a table of exponents and parts, and one of saturating batches; neither where sizes are too few."""
    found = []
    for title, group in grid_groups(records).items():
        lines = list(along(group))
        found += [table for table in (_growth_table(title, lines, at), _saturation_table(title, lines)) if table]
    note = "growth needs values at two or more sizes: measure several lengths or batch sizes."
    return found or [Table(title="growth", metric=None, labels=("figure",), columns=(), rows=(), notes=(note,))]


def along(group: Group) -> Iterator[Along]:
    """The lines of a title: along each axis, everything else held."""
    for axis in AXES:
        lines: dict[str, Cases] = {}
        for records in group:
            size = records[0].case.axes.get(axis)
            if isinstance(size, int | float):
                lines.setdefault(records[0].case.line(axis), []).append((float(size), records))
        long = [cases for cases in lines.values() if len({size for size, _ in cases}) > 1]
        firsts = [cases[0][1][0].case for cases in long]
        # what each line holds; where that is the same of several, also the rest of the case, as far as it differs
        names = [_held(case.axes, axis) for case in firsts]
        for cases, case, name in zip(long, firsts, names, strict=True):
            alike = [_rest(other) for other, its in zip(firsts, names, strict=True) if its == name]
            differing = [
                f"{key} {value}" for key, value in _rest(case).items() if any(r.get(key) != value for r in alike)
            ]
            yield Along(axis=axis, held=", ".join(filter(None, [name, *differing])), cases=cases)


def _rest(case: Case) -> dict[str, Any]:
    axes = {name: value for name, value in case.axes.items() if name not in AXES}
    return {**axes, **case.protocol.to_json(), "meters": " + ".join(case.meters)}


def _held(axes: Mapping[str, Any], axis: str) -> str:
    parts = [f"{name} {axes[name]:g}" for name in AXES if name != axis and isinstance(axes.get(name), int | float)]
    return ", ".join(part for part in parts if axis != "max_frames" or not part.startswith("batch"))


def _growth_table(title: str, lines: Sequence[Along], at: At) -> Table | None:
    found = [(one, line) for one in lines for metric in _SHOWN if (line := line_of(one.cases, metric)) is not None]
    if not found:
        return None
    measured = {one.axis for one, _ in found}
    asked = [(axis, size) for axis, size in at if axis in measured]
    rows = [
        Row(
            labels=(line.metric.title, one.text(line), one.held),
            cells=(*_fitted(line), *(_expected(one, line, axis, size) for axis, size in asked)),
        )
        for one, line in found
    ]
    notes = [*_notes(found, rows), *_extrapolation_notes(found, rows, asked)]
    notes += [
        f"no extrapolation along {axis}: fewer than two sizes were measured of {axis}."
        for axis in dict.fromkeys(axis for axis, _ in at if axis not in measured)
    ]
    columns = [*(metric.title for metric in _FITTED), "curve within", *(f"at {axis} {size:g}" for axis, size in asked)]
    return list_table(f"{title}: growth", ("figure", "along", "held"), _FITTED, rows, notes, columns=columns)


def _fitted(line: Line) -> tuple[Cell, Cell, Cell, Cell]:
    part = quadratic_part(line)
    slopes = (Cell(estimate=exponent(line)), Cell(estimate=local_exponent(line)))
    if not line.has_curve:
        absent = Cell(word=NOT_MEASURED, reason=_WHY["curve"])
        return (*slopes, absent, absent)
    whole = Cell(word=NOT_MEASURED, reason=_WHY["poor"]) if part is None else Cell(estimate=part)
    return (*slopes, whole, Cell(word=f"{line.miss_percent:.2g} %"))


def _expected(one: Along, line: Line, axis: str, size: float) -> Cell:
    if axis != one.axis:
        return Cell(word="")
    found = expected(line, size)
    if found is not None:
        return Cell(estimate=found)
    if line.fits_poorly:
        return Cell(word="no curve", reason=_WHY["poor"])
    return Cell(word="no interval", reason=_WHY["interval"])


def _notes(found: Sequence[tuple[Along, Line]], rows: Sequence[Row]) -> list[str]:
    notes = []
    if some_interval(rows):
        notes.append(
            "95 % intervals: the interval of an exponent comes from the residuals of the fit. "
            "With only two sizes, and for all other values, it comes from the spread over rounds."
        )
    if not all(line.has_curve for _, line in found):
        notes.append(f"{_WHY['curve']}.")
    poor = [
        f"{line.metric.title} along {one.axis}{one.held and f', {one.held}'}" for one, line in found if line.fits_poorly
    ]
    if poor:
        notes.append(
            f"the curve a + b·x + c·x² does not fit {'; '.join(poor)}. Therefore there is no quadratic part and no "
            "extrapolation."
        )
    return notes


def _extrapolation_notes(found: Sequence[tuple[Along, Line]], rows: Sequence[Row], at: At) -> list[str]:
    if not any(cell.estimate and cell.estimate.statistic == EXTRAPOLATED for row in rows for cell in row.cells):
        return []
    notes = [
        "values at unmeasured sizes are extrapolated with the fitted curve. Their interval also includes the "
        "extrapolation by a power law through the nearest measured sizes."
    ]
    for axis, size in at:
        least, largest = measured_span([line for one, line in found if one.axis == axis])
        if size > largest:
            notes.append(f"{axis} {size:g} is {size / largest:.2g} times the largest measured size.")
        elif size < least:
            notes.append(f"{axis} {size:g} is {size / least:.2g} times the smallest measured size.")
    return notes


def _saturation_table(title: str, lines: Sequence[Along]) -> Table | None:
    found = [(one, s) for one in lines if one.axis == "batch" and (s := saturation(one.cases)) is not None]
    if not found:
        return None
    rows = []
    for one, s in found:
        batch = Cell(word=f"not reached at {s.largest:g}") if s.batch is None else Cell(estimate=s.batch)
        rows.append(Row(labels=(one.held,), cells=(batch, Cell(estimate=s.there), Cell(estimate=s.best))))
    columns = (metrics.SATURATION_BATCH.title, "throughput there", "best throughput")
    note = (
        f"not reached: only the largest batch is within {100 * (1 - NEAR):.0f} % of the best throughput, so a larger "
        "batch may give more."
    )
    shown = (metrics.SATURATION_BATCH, metrics.THROUGHPUT)
    return list_table(f"{title}: saturation", ("held",), shown, rows, [note], columns=columns)
