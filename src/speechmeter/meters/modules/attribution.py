"""From a finished profile to rows: whose time every instant of a call was, forward, backward and recomputed.

On the CPU the time of an event outside those inside it goes to the innermost label or module, else to the stage it ran
in. What a device did goes to whoever gave the order. Rows of a call add up to it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from speechmeter.meters.modules.events import CpuEvent, Events, Kernel, events_of
from speechmeter.meters.modules.names import OURS, STAGE
from speechmeter.meters.modules.spans import Span, merged, overlap, shared_out
from speechmeter.meters.modules.tree import (
    BACKWARD,
    FORWARD,
    NOWHERE,
    Direction,
    Node,
    Place,
    calls_among,
    settled_nodes,
)

_NANOSECOND = 1e-9


@dataclass(frozen=True, kw_only=True)
class Row:
    """What one place cost in one call and direction: seconds of its own on the CPU and the device, times entered."""

    place: Place
    direction: Direction
    cpu_s: float = 0.0
    gpu_s: float = 0.0
    calls: int = 0


@dataclass(frozen=True, kw_only=True)
class Attributed:
    """The rows of one call. `wall_s` is how long its ranges were open; 0 where no call was marked."""

    rows: tuple[Row, ...]
    wall_s: float = 0.0


Key = tuple[int, Place, Direction]


def attribute(profile: Any) -> list[Attributed]:
    """The rows of every marked call of a finished profile; without a mark, all of it as one call."""
    return attribute_events(events_of(profile))


def attribute_events(events: Events) -> list[Attributed]:
    """The same of events that are at hand."""
    return attribute_nodes(settled_nodes(events), events.kernels)


def attribute_nodes(nodes: Sequence[Node], kernels: Sequence[Kernel]) -> list[Attributed]:
    """The same of events that have their places, and of what a device did."""
    calls = _Calls(calls_among(nodes))
    cpu_ns, entered = _on_cpu(nodes, calls)
    gpu_ns = _on_device(kernels, nodes, calls)
    return [calls.attributed(number, cpu_ns, gpu_ns, entered) for number in range(calls.count)]


class _Calls:
    """Which call an instant belongs to. A call is all ranges of its name: what is not clocked lies between."""

    def __init__(self, marks: Sequence[CpuEvent]) -> None:
        self.marks = marks
        self.starts = [mark.start_ns for mark in marks]
        self.numbers = {name: place for place, name in enumerate(dict.fromkeys(mark.name for mark in marks))}
        self.count = max(1, len(self.numbers))

    def number(self, instant_ns: int) -> int | None:
        """The call that was under way; None between them."""
        if not self.marks:
            return 0
        mark = self.marks[bisect_right(self.starts, instant_ns) - 1]
        return self.numbers[mark.name] if mark.start_ns <= instant_ns <= mark.end_ns else None

    def wall_ns(self, number: int) -> int:
        """How long all ranges of a call were open."""
        return sum(mark.end_ns - mark.start_ns for mark in self.marks if self.numbers[mark.name] == number)

    def attributed(
        self, number: int, cpu_ns: dict[Key, float], gpu_ns: dict[Key, float], entered: dict[Key, int]
    ) -> Attributed:
        keys = [key for key in dict.fromkeys((*entered, *cpu_ns, *gpu_ns)) if key[0] == number]
        return Attributed(
            wall_s=self.wall_ns(number) * _NANOSECOND,
            rows=tuple(
                Row(
                    place=key[1],
                    direction=key[2],
                    cpu_s=cpu_ns.get(key, 0.0) * _NANOSECOND,
                    gpu_s=gpu_ns.get(key, 0.0) * _NANOSECOND,
                    calls=entered.get(key, 0),
                )
                for key in keys
            ),
        )


def _on_cpu(nodes: Sequence[Node], calls: _Calls) -> tuple[dict[Key, float], dict[Key, int]]:
    spent: dict[Key, float] = {}
    entered: dict[Key, int] = {}
    elsewhere = _Elsewhere(nodes)
    for node in nodes:
        number = calls.number(node.event.start_ns)
        if number is None:
            continue
        key = (number, *_owner(node, elsewhere))
        spent[key] = spent.get(key, 0.0) + _own_ns(node, elsewhere)
        if node.opens:
            entered[key] = entered.get(key, 0) + 1
    return spent, entered


def _owner(node: Node, elsewhere: _Elsewhere) -> tuple[Place, Direction]:
    """Between its nodes, the time of a backward pass is the engine's and not the stage's that started it."""
    if node.event.name.startswith(STAGE) and elsewhere.backward_within(node):
        return NOWHERE.held_by(node.place.labels), BACKWARD
    return node.place, node.direction


def _own_ns(node: Node, elsewhere: _Elsewhere) -> int:
    event = node.event
    if not node.children and not event.name.startswith(OURS) and not event.is_label:
        return event.end_ns - event.start_ns
    own = node.own_spans()
    return sum(end - start for start, end in own) - elsewhere.waited_ns(node, own)


class _Elsewhere:
    """Nodes of the backward pass by thread. On a GPU they run in a thread of their own, and the caller waits."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        by_thread: dict[int, list[Span]] = {}
        for node in nodes:
            if node.event.is_node and (node.parent is None or not node.parent.in_backward):
                by_thread.setdefault(node.event.thread, []).append((node.event.start_ns, node.event.end_ns))
        self.all = merged(span for spans in by_thread.values() for span in spans)
        self.outside = {
            thread: merged(span for other, spans in by_thread.items() if other != thread for span in spans)
            for thread in {node.event.thread for node in nodes}
        }
        self.callers = {node.event.forward_thread for node in nodes if node.event.is_node and node.event.sequence >= 0}

    def backward_within(self, node: Node) -> bool:
        """Whether any node of the backward pass ran while this range was open, in any thread."""
        whole = (node.event.start_ns, node.event.end_ns)
        return overlap(whole, self.all) > 0

    def waited_ns(self, node: Node, own: Sequence[Span]) -> int:
        """How much of a range's own time was a wait for the backward pass in another thread.

        A label of a thread that had no forward pass, such as one that loads data, waits for nothing.
        """
        is_label = node.event.is_label and node.event.thread in self.callers
        if not node.event.name.startswith(OURS) and not is_label:
            return 0
        busy = self.outside[node.event.thread]
        return sum(overlap(span, busy) for span in own)


def _on_device(kernels: Sequence[Kernel], nodes: Sequence[Node], calls: _Calls) -> dict[Key, float]:
    by_id = {node.event.id: node for node in nodes}
    spans: list[tuple[int, int, Key]] = []
    for kernel in kernels:
        node = by_id.get(kernel.launched_by) if kernel.launched_by > 0 else None
        number = calls.number(kernel.start_ns if node is None else node.event.start_ns)
        if number is not None:
            key = (number, NOWHERE, FORWARD) if node is None else (number, node.place, node.direction)
            spans.append((kernel.start_ns, kernel.end_ns, key))
    return shared_out(spans)
