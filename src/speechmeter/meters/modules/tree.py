"""Which event runs inside which, and whose time each one is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from speechmeter.meters.modules.events import CpuEvent
from speechmeter.meters.modules.names import CALL, LABEL, MODULE, PARAMETER, STAGE

Direction = Literal["forward", "backward", "recompute"]
FORWARD: Direction = "forward"
BACKWARD: Direction = "backward"
RECOMPUTE: Direction = "recompute"
DIRECTIONS: tuple[Direction, ...] = (FORWARD, BACKWARD, RECOMPUTE)


@dataclass(frozen=True, kw_only=True)
class Place:
    """What time is given to: a label, with the module it was opened in if any; a module; else a stage; else nothing."""

    stage: str = ""
    module: str = ""
    label: str = ""


NOWHERE = Place()


@dataclass(kw_only=True)
class Node:
    """An event with what is directly inside it. `place` and `direction` say whose time is its own."""

    event: CpuEvent
    parent: Node | None
    children: list[Node] = field(default_factory=list)
    place: Place = NOWHERE
    direction: Direction = FORWARD
    opens: bool = False
    """Whether a module or a label begins here."""

    @property
    def in_backward(self) -> bool:
        """Whether it runs inside a node of the backward pass."""
        return self.direction != FORWARD


def nested(events: Sequence[CpuEvent]) -> list[Node]:
    """Every event as a node, an outer one before those inside it, thread by thread."""
    nodes: list[Node] = []
    open_nodes: list[Node] = []
    for event in sorted(events, key=lambda e: (e.thread, e.start_ns, -e.end_ns)):
        while open_nodes and not _holds(open_nodes[-1].event, event):
            open_nodes.pop()
        parent = open_nodes[-1] if open_nodes else None
        node = Node(event=event, parent=parent)
        if parent is not None:
            parent.children.append(node)
        nodes.append(node)
        open_nodes.append(node)
    return nodes


def _holds(outer: CpuEvent, inner: CpuEvent) -> bool:
    return outer.thread == inner.thread and outer.start_ns <= inner.start_ns and inner.end_ns <= outer.end_ns


def settle(nodes: Sequence[Node]) -> None:
    """Give every node its place and direction: forward ones by what is around them, backward ones by their forward.

    A node of the backward pass belongs to the latest-started forward event that has its thread and sequence number:
    outer operators carry the number of the inner one that made the node. In order of time, because the node of an
    event that is computed again in the backward pass comes after it.
    """
    made_by: dict[tuple[int, int], Node] = {}
    owners = _gradient_owners(nodes)
    for node in sorted(nodes, key=lambda n: (n.event.start_ns, -n.event.end_ns)):
        event, parent = node.event, node.parent
        if event.is_node:
            _settle_backward(node, made_by, owners)
            continue
        if parent is not None:
            node.place, node.direction = parent.place, parent.direction
        _open_range(node)
        if event.sequence >= 0:
            made_by[event.thread, event.sequence] = node


def _open_range(node: Node) -> None:
    name, outer = node.event.name, node.place.module
    if name.startswith(MODULE):
        node.place = Place(module=name[len(MODULE) :])
        node.direction = RECOMPUTE if node.in_backward else FORWARD
    elif name.startswith(LABEL):
        node.place = Place(module=outer, label=name[len(LABEL) :])
    elif node.event.is_label:
        node.place = Place(module=outer, label=name)
    elif name.startswith(STAGE):
        node.place = Place(stage=name[len(STAGE) :])
        return
    else:
        return
    node.opens = True


def _settle_backward(node: Node, made_by: dict[tuple[int, int], Node], owners: dict[int, str]) -> None:
    event, parent = node.event, node.parent
    node.direction = BACKWARD
    forward = made_by.get((event.forward_thread, event.sequence)) or made_by.get((event.thread, event.sequence))
    if event.sequence >= 0 and forward is not None:
        node.place = forward.place
    elif id(node) in owners:
        node.place = Place(module=owners[id(node)])
    elif parent is not None and parent.event.is_node:
        node.place = parent.place


def _gradient_owners(nodes: Sequence[Node]) -> dict[int, str]:
    """The module of every node that added up a gradient, and of those right above it."""
    owners: dict[int, str] = {}
    for node in nodes:
        if not node.event.name.startswith(PARAMETER):
            continue
        above = node.parent
        while above is not None and above.event.is_node:
            owners[id(above)] = node.event.name[len(PARAMETER) :]
            above = above.parent
    return owners


def calls_among(nodes: Sequence[Node]) -> list[CpuEvent]:
    """The ranges of whole calls, in order of time."""
    return sorted((n.event for n in nodes if n.event.name.startswith(CALL)), key=lambda event: event.start_ns)
