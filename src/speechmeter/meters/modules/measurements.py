"""Rows of calls as measurements: one for each module, label and stage, what nobody could be given, and the sum.

A value is the time of its own in one call, all directions together; `forward`, `backward` and `recompute` in the notes
are the same values apart. A label's `inside` says in which modules it was opened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Measurement
from speechmeter.meters.modules.attribution import Attributed, Row
from speechmeter.meters.modules.tree import DIRECTIONS, FORWARD, Direction, Place

UNATTRIBUTED = "unattributed"
_DIGITS = 9
"""Of seconds: a nanosecond is what the profiler's clock tells apart."""

Values = list[float]
Read = Callable[[Row], float]
Rows = Mapping[tuple[Place, Direction], Row]


def scope_of(place: Place) -> str:
    """`label:x`, `module:encoder.layers.0`, `stage:loss`, or `unattributed`."""
    if place.label:
        return f"label:{place.label}"
    if place.module:
        return f"module:{place.module}"
    return f"stage:{place.stage}" if place.stage else UNATTRIBUTED


def measurements(
    calls: Sequence[Attributed], classes: Mapping[str, str], gpu: bool, notes: Mapping[str, Any]
) -> list[Measurement]:
    """Of the CPU; of a GPU too, where there is one."""
    found = _all(metrics.TIME_MODULE, calls, classes, lambda row: row.cpu_s, notes)
    if not gpu:
        return found
    if not any(row.gpu_s for call in calls for row in call.rows):
        return [*found, Measurement.absent(metrics.TIME_GPU, "the profiler saw no kernel")]
    return [*found, *_all(metrics.TIME_GPU, calls, classes, lambda row: row.gpu_s, notes)]


def _all(
    metric: Metric, calls: Sequence[Attributed], classes: Mapping[str, str], read: Read, notes: Mapping[str, Any]
) -> list[Measurement]:
    places: dict[str, dict[Place, None]] = {UNATTRIBUTED: {}}
    for call in calls:
        for row in call.rows:
            places.setdefault(scope_of(row.place), {})[row.place] = None
    table = _Table(calls, read)
    rows = [_one(metric, scope, table, list(own), {**notes, **_facts(own, classes)}) for scope, own in places.items()]
    total = [round(sum(values), _DIGITS) for values in zip(*(m.values for m in rows), strict=True)]
    source = {"calls": len(calls), **notes}
    return [Measurement.of(metric, total, source="torch.profiler", notes=source), *rows]


def _facts(places: Mapping[Place, None], classes: Mapping[str, str]) -> dict[str, Any]:
    place = next(iter(places), None)
    return {"class": classes[place.module]} if place and not place.label and place.module in classes else {}


class _Table:
    """The rows of all calls, to be looked up by place and direction."""

    def __init__(self, calls: Sequence[Attributed], read: Read) -> None:
        self.calls = [{(row.place, row.direction): row for row in call.rows} for call in calls]
        self.read = read

    def apart(self, places: Sequence[Place]) -> dict[str, Values]:
        """One value a call for each direction that has any."""
        found = {direction: [self._seconds(call, places, direction) for call in self.calls] for direction in DIRECTIONS}
        return {direction: values for direction, values in found.items() if any(values)}

    def _seconds(self, call: Rows, places: Sequence[Place], direction: Direction) -> float:
        rows = (call.get((place, direction)) for place in places)
        return round(sum(self.read(row) for row in rows if row is not None), _DIGITS)

    def entered(self, places: Sequence[Place]) -> float:
        """How often these were entered in an average call, not counting what was computed again."""
        rows = (call.get((place, FORWARD)) for call in self.calls for place in places)
        return sum(row.calls for row in rows if row is not None) / len(self.calls)


def _one(metric: Metric, scope: str, table: _Table, places: Sequence[Place], notes: Mapping[str, Any]) -> Measurement:
    apart = table.apart(places)
    values = [round(sum(parts), _DIGITS) for parts in zip(*apart.values(), strict=True)] or [0.0] * len(table.calls)
    inside = {place.module: table.apart([place]) for place in places if place.label and place.module}
    found = {**notes, **apart, "calls": table.entered(places), **({"inside": inside} if inside else {})}
    return Measurement.of(metric, values, scope=scope, notes=found)
