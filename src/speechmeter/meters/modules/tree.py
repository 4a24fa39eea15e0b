"""Which event runs inside which, and whose time each one is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from speechmeter.meters.modules.events import CpuEvent, Events
from speechmeter.meters.modules.names import CALL, LABEL, MODULE, PARAMETER, STAGE
from speechmeter.meters.modules.spans import Span, gaps

Direction = Literal["forward", "backward", "recompute"]
FORWARD: Direction = "forward"
BACKWARD: Direction = "backward"
RECOMPUTE: Direction = "recompute"
CHECKPOINT = "CheckpointFunctionBackward"
"""The node of a reentrant checkpoint: it computes a function again and runs a backward pass of its own."""
DIRECTIONS: tuple[Direction, ...] = (FORWARD, BACKWARD, RECOMPUTE)


@dataclass(frozen=True, kw_only=True)
class Place:
    """What time is given to: a label, with the module it was opened in if any; a module; else a stage; else nothing.

    `labels` are all that hold it, the outermost first, a label's own name among them: their time has this time in it.
    """

    stage: str = ""
    module: str = ""
    label: str = ""
    labels: tuple[str, ...] = ()

    def held_by(self, labels: tuple[str, ...]) -> Place:
        """The same, held by other labels."""
        return self if labels == self.labels else replace(self, labels=labels)


NOWHERE = Place()


@dataclass(kw_only=True, slots=True, eq=False)
class Node:
    """An event with what is directly inside it. `place` and `direction` say whose time is its own.

    `around` are the labels that were open while a node of the backward pass ran, beside those of its forward.
    """

    event: CpuEvent
    parent: Node | None
    children: list[Node] = field(default_factory=list)
    place: Place = NOWHERE
    direction: Direction = FORWARD
    around: tuple[str, ...] = ()
    opens: bool = False
    """Whether a module or a label begins here."""

    @property
    def in_backward(self) -> bool:
        """Whether it runs inside a node of the backward pass."""
        return self.direction != FORWARD

    def own_spans(self) -> list[Span]:
        """When it ran and nothing directly inside it did."""
        inside = [(child.event.start_ns, child.event.end_ns) for child in self.children]
        return gaps((self.event.start_ns, self.event.end_ns), inside)

    def own_ns(self) -> int:
        """How long it ran without what is directly inside it."""
        return sum(end - start for start, end in self.own_spans())


def settled_nodes(events: Events) -> list[Node]:
    """Every event of the CPU as a node with its place and direction, an outer one before those inside it."""
    nodes = nested(events.cpu)
    settle(nodes)
    return nodes


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
    known = {node.event.name[len(MODULE) :] for node in nodes if node.event.name.startswith(MODULE)}
    labels = _Labels()
    for node in sorted(nodes, key=lambda n: (n.event.start_ns, -n.event.end_ns)):
        event, parent = node.event, node.parent
        if event.is_node:
            node.around = labels.around(node)
            _settle_backward(node, made_by, owners, labels)
            continue
        labels.latest[event.thread] = node
        if parent is not None:
            node.place, node.direction = parent.place, parent.direction
            if parent.event.is_node:
                _settle_again(node, parent, known, labels)
        _open_range(node, labels)
        if event.sequence >= 0:
            made_by[event.thread, event.sequence] = node


class _Labels:
    """Which labels hold what runs in the backward pass."""

    def __init__(self) -> None:
        self.latest: dict[int, Node] = {}
        """The event of each thread that began last."""
        self.opened: dict[str, tuple[str, ...]] = {}
        """By the name of a range: the labels around it when it was opened last in the forward pass."""
        self._callers: dict[int, int] = {}

    def around(self, node: Node) -> tuple[str, ...]:
        """The labels that are open around a node: in its thread, or where it was started from another, in that one.

        On a GPU the engine has a thread of its own, and the caller waits with its labels open. It is taken to be the
        thread of the forward pass.
        """
        event, parent = node.event, node.parent
        if parent is not None:
            return parent.around if parent.event.is_node else parent.place.labels
        if event.sequence >= 0:
            self._callers[event.thread] = event.forward_thread
        here = self.latest.get(self._callers.get(event.thread, event.thread))
        while here is not None and here.event.end_ns <= event.start_ns:
            here = here.parent
        return here.place.labels if here is not None else ()

    def again(self, node: Node) -> tuple[str, ...] | None:
        """The labels around what a node computes again: those of the first range in it; None where it has none."""
        ranges = (self.opened.get(child.event.name) for child in node.children)
        found = next((labels for labels in ranges if labels is not None), None)
        return None if found is None else joined(node.around, found)


def joined(outer: tuple[str, ...], inner: tuple[str, ...]) -> tuple[str, ...]:
    """Labels of both, each once."""
    return tuple(dict.fromkeys((*outer, *inner))) if outer else inner


def _settle_again(node: Node, parent: Node, known: set[str], labels: _Labels) -> None:
    """What runs in a node of the backward pass as forward code: is it work of that node, or computed again?"""
    repeats = CHECKPOINT not in parent.event.name and (node.event.sequence >= 0 or node.event.is_range)
    held_by = labels.again(parent) if repeats else None
    if node.event.sequence >= 0 and (place := _computed_again(parent, known)) is not None:
        node.place, node.direction = place, RECOMPUTE
    if held_by is not None:
        node.place = node.place.held_by(held_by)


def _computed_again(node: Node, known: set[str]) -> Place | None:
    """Whose work a backward node repeats outside of modules; None where it repeats none.

    A checkpoint computes forward code again inside a node: its own, where it is reentrant and runs a backward pass in
    there too; else that of the first operator that needs what was not kept, of whatever module. Then only the modules
    that are called again show whose function it was: that of the nearest one around all of them.
    """
    if CHECKPOINT in node.event.name:
        return node.place
    called = [child.event.name[len(MODULE) :] for child in node.children if child.event.name.startswith(MODULE)]
    if not called:
        return None
    around = _around(called)
    while around and around not in known:
        around = around.rpartition(".")[0]
    return Place(module=around) if around else None


def _around(paths: Sequence[str]) -> str:
    """The path that all of these lie in; empty where there is none."""
    shared: list[str] = []
    for steps in zip(*(path.split(".")[:-1] for path in paths), strict=False):
        if len(set(steps)) > 1:
            break
        shared.append(steps[0])
    return ".".join(shared)


def _open_range(node: Node, labels: _Labels) -> None:
    name, outer, around = node.event.name, node.place.module, node.place.labels
    if name.startswith(MODULE):
        node.place = Place(module=name[len(MODULE) :], labels=around)
        node.direction = RECOMPUTE if node.in_backward else FORWARD
    elif name.startswith(LABEL) or node.event.is_label:
        own = name.removeprefix(LABEL)
        node.place = Place(module=outer, label=own, labels=joined(around, (own,)))
    elif name.startswith(STAGE):
        node.place = Place(stage=name[len(STAGE) :], labels=around)
        return
    else:
        return
    node.opens = True
    if not node.in_backward:
        labels.opened[name] = around


def _settle_backward(node: Node, made_by: dict[tuple[int, int], Node], owners: dict[int, str], labels: _Labels) -> None:
    event, parent = node.event, node.parent
    node.direction = BACKWARD
    forward = made_by.get((event.forward_thread, event.sequence)) or made_by.get((event.thread, event.sequence))
    if event.sequence >= 0 and forward is not None:
        node.place = forward.place.held_by(joined(node.around, forward.place.labels))
    elif id(node) in owners:
        owner = owners[id(node)]
        node.place = Place(module=owner, labels=joined(node.around, labels.opened.get(MODULE + owner, ())))
    elif parent is not None and parent.event.is_node:
        node.place = parent.place
    elif node.around:
        node.place = Place(labels=node.around)


def _gradient_owners(nodes: Sequence[Node]) -> dict[int, str]:
    """The module of every node that added up a gradient, and of those right above it."""
    owners: dict[int, str] = {}
    for node in nodes:
        if not node.event.name.startswith(PARAMETER):
            continue
        above = node.parent
        while above is not None and above.event.is_node and CHECKPOINT not in above.event.name:
            owners[id(above)] = node.event.name[len(PARAMETER) :]
            above = above.parent
    return owners


def calls_among(nodes: Sequence[Node]) -> list[CpuEvent]:
    """The ranges of whole calls, in order of time."""
    return sorted((n.event for n in nodes if n.event.name.startswith(CALL)), key=lambda event: event.start_ns)
