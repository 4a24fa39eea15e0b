"""Rows of calls as measurements: one for each module, label and stage, what nobody could be given, and the sum.

A value is the time of its own in one call, all directions together; `forward`, `backward` and `recompute` in the notes
are the same values apart. A label's `inside` says in which modules it was opened. `labels` says which labels hold the
time of a row: that of a label with all that is inside it is put together from these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.scope import LABEL, MODULE, STAGE, UNATTRIBUTED, Scope
from speechmeter.core.types import Measurement
from speechmeter.meters.modules.attribution import Attributed, Row
from speechmeter.meters.modules.tree import DIRECTIONS, FORWARD, Direction, Place

_NO_KERNEL = "the profiler saw no kernel"
_DIGITS = 9
"""Of seconds: a nanosecond is what the profiler's clock tells apart."""

Values = list[float]
Read = Callable[[Row], float]
Rows = Mapping[tuple[Place, Direction], Row]


def scope_of(place: Place) -> str:
    """`label:x`, `module:encoder.layers.0`, `stage:loss`, or `unattributed`."""
    if place.label:
        return Scope.of(LABEL, place.label)
    if place.module:
        return Scope.of(MODULE, place.module)
    return Scope.of(STAGE, place.stage) if place.stage else UNATTRIBUTED


def measurements(
    calls: Sequence[Attributed],
    classes: Mapping[str, str],
    gpu: bool,
    notes: Mapping[str, Any],
    recorded: Mapping[str, Any] = MappingProxyType({}),
) -> list[Measurement]:
    """Of the CPU; of a GPU too, where there is one. `recorded` is said of the sum alone, `notes` of every row."""
    found = _all(metrics.TIME_MODULE, calls, classes, lambda row: row.cpu_s, notes, recorded)
    if not gpu:
        return found
    if not _saw_kernels(calls):
        return [*found, Measurement.absent(metrics.TIME_GPU, _NO_KERNEL)]
    return [*found, *_all(metrics.TIME_GPU, calls, classes, lambda row: row.gpu_s, notes, recorded)]


def gpu_busy(calls: Sequence[Attributed], notes: Mapping[str, Any], recorded: Mapping[str, Any]) -> Measurement:
    """How long the GPU was busy in each call: the sum of the same rows, for meters that have no module rows."""
    if not _saw_kernels(calls):
        return Measurement.absent(metrics.TIME_GPU, _NO_KERNEL)
    return _all(metrics.TIME_GPU, calls, {}, lambda row: row.gpu_s, notes, recorded)[0]


def _saw_kernels(calls: Sequence[Attributed]) -> bool:
    return any(row.gpu_s for call in calls for row in call.rows)


def _all(
    metric: Metric,
    calls: Sequence[Attributed],
    classes: Mapping[str, str],
    read: Read,
    notes: Mapping[str, Any],
    recorded: Mapping[str, Any],
) -> list[Measurement]:
    places: dict[str, dict[Place, None]] = {UNATTRIBUTED: {}}
    for call in calls:
        for row in call.rows:
            places.setdefault(scope_of(row.place), {})[row.place] = None
    table = _Table(calls, read)
    rows = [_one(metric, scope, table, list(own), {**notes, **_facts(own, classes)}) for scope, own in places.items()]
    total = [round(sum(values), _DIGITS) for values in zip(*(m.values for m in rows), strict=True)]
    source = {"calls": len(calls), **notes, **recorded}
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
    found = {**notes, **apart, "calls": table.entered(places), **_inside(table, places), **_labels(table, places)}
    return Measurement.of(metric, values, scope=scope, notes=found)


def _inside(table: _Table, places: Sequence[Place]) -> dict[str, Any]:
    """What a label did in each module that it was opened in; nothing where there is none."""
    modules = dict.fromkeys(place.module for place in places if place.label and place.module)
    own = {path: table.apart([place for place in places if place.module == path]) for path in modules}
    return {"inside": own} if own else {}


def _labels(table: _Table, places: Sequence[Place]) -> dict[str, Any]:
    """All parts of a row by the labels that hold them and, of a label, the module; nothing where no label holds any.

    A single part is the whole row, and its values are not repeated.
    """
    parts: dict[tuple[tuple[str, ...], str], list[Place]] = {}
    for place in places:
        parts.setdefault((place.labels, place.module if place.label else ""), []).append(place)
    if not any(held_by for held_by, _ in parts):
        return {}
    return {
        "labels": [
            {
                "in": list(held_by),
                **({"module": module} if module else {}),
                **(table.apart(own) if len(parts) > 1 else {}),
            }
            for (held_by, module), own in parts.items()
        ]
    }
