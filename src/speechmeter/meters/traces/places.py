"""Tell every operator of a trace the module whose work it does, those of the backward pass too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from speechmeter.core.traces import DIRECTION, MODULE, Event, Trace
from speechmeter.meters.modules.tree import Direction, Node

ID = "External id"
"""What torch calls the number of an event of the CPU, in the event itself and in what a device did for it."""


Homes = Mapping[int, tuple[str, Direction]]


def homes_of(nodes: Sequence[Node]) -> Homes:
    """(module, direction) by the id of an event of the CPU, where it does the work of a module."""
    return {node.event.id: (node.place.module, node.direction) for node in nodes if node.place.module}


def placed(trace: Trace, homes: Homes) -> Trace:
    """The trace with `module` and `direction` among the arguments of its slices, where there is a module."""
    return Trace(events=[_at_home(event, homes) for event in trace.events], facts=trace.facts)


def _at_home(event: Event, homes: Homes) -> Event:
    args = event.get("args") or {}
    home = homes.get(args.get(ID, -1)) if event.get("ph") == "X" else None
    return event if home is None else {**event, "args": {**args, MODULE: home[0], DIRECTION: home[1]}}
