"""Whose time every instant of a recorded call was: which event runs inside which, and what owns each one.

On the CPU the time of an event, without the events inside it, belongs to the innermost label or module, else to the
stage it ran in. The time of a device belongs to the owner of the event that launched the work. The rows of a call add
up to it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Literal

from speechmeter.meters.recording.events import CpuEvent, Events, Kernel, Span, gaps, merged, overlap, shared_out
from speechmeter.meters.recording.label import CALL, LABEL, MODULE, OURS, PARAMETER, STAGE

Direction = Literal["forward", "backward", "recompute"]
FORWARD: Direction = "forward"
BACKWARD: Direction = "backward"
RECOMPUTE: Direction = "recompute"
DIRECTIONS: tuple[Direction, ...] = (FORWARD, BACKWARD, RECOMPUTE)
_CHECKPOINT = "CheckpointFunctionBackward"
"""The node of a reentrant checkpoint: it computes a function again and runs a backward pass of its own."""
_NANOSECOND = 1e-9


@dataclass(frozen=True, kw_only=True)
class Owner:
    """What time is given to: a label, with the module it was opened in if any; a module; else a stage; else nothing.

    `labels` are all labels around it, the outermost first, a label's own name among them: their time includes its time.
    """

    stage: str = ""
    module: str = ""
    label: str = ""
    labels: tuple[str, ...] = ()

    def held_by(self, labels: tuple[str, ...]) -> Owner:
        """The same inside other labels."""
        return self if labels == self.labels else replace(self, labels=labels)


NOBODY = Owner()


@dataclass(kw_only=True, slots=True, eq=False)
class Node:
    """An event with the events directly inside it. `owner` and `direction` say whose time is its own.

    `around` are the labels that were open while a node of the backward pass ran, beside those of its forward. `opens`
    says that a module or a label begins here.
    """

    event: CpuEvent
    parent: Node | None
    children: list[Node] = field(default_factory=list)
    owner: Owner = NOBODY
    direction: Direction = FORWARD
    around: tuple[str, ...] = ()
    opens: bool = False

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


@dataclass(frozen=True, kw_only=True)
class Row:
    """What one owner cost in one call and direction: its own seconds on the CPU and the device, and times entered."""

    owner: Owner
    direction: Direction
    cpu_s: float = 0.0
    gpu_s: float = 0.0
    calls: int = 0


@dataclass(frozen=True, kw_only=True)
class Attributed:
    """The rows of one call. `wall_s` is how long its ranges were open; 0 where no call was marked."""

    rows: tuple[Row, ...]
    wall_s: float = 0.0


def attribute(events: Events) -> list[Attributed]:
    """The rows of every marked call; without a mark, all events are one call."""
    return attribute_nodes(settled_nodes(events), events.kernels)


Key = tuple[int, Owner, Direction]


def attribute_nodes(nodes: Sequence[Node], kernels: Sequence[Kernel]) -> list[Attributed]:
    """The same for events that have their owners, and the work of a device."""
    marks = sorted((n.event for n in nodes if n.event.name.startswith(CALL)), key=lambda event: event.start_ns)
    starts = [mark.start_ns for mark in marks]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(mark.name for mark in marks))}

    def call_at(instant_ns: int) -> int | None:
        # A call is all ranges of its name. What is not clocked lies between them, and belongs to no call.
        if not marks:
            return 0
        mark = marks[bisect_right(starts, instant_ns) - 1]
        return numbers[mark.name] if mark.start_ns <= instant_ns <= mark.end_ns else None

    cpu_ns: dict[Key, float] = {}
    entered: dict[Key, int] = {}
    backward = _BackwardPass(nodes)
    for node in nodes:
        number = call_at(node.event.start_ns)
        if number is None:
            continue
        owner, direction = node.owner, node.direction
        if node.event.name.startswith(STAGE) and overlap((node.event.start_ns, node.event.end_ns), backward.all):
            # Between its nodes, the time of a backward pass is the engine's and not the stage's that started it.
            owner, direction = NOBODY.held_by(owner.labels), BACKWARD
        key = (number, owner, direction)
        cpu_ns[key] = cpu_ns.get(key, 0.0) + _own_ns(node, backward)
        if node.opens:
            entered[key] = entered.get(key, 0) + 1

    by_id = {node.event.id: node for node in nodes}
    on_device: list[tuple[int, int, Key]] = []
    for kernel in kernels:
        launcher = by_id.get(kernel.launched_by) if kernel.launched_by > 0 else None
        number = call_at(kernel.start_ns if launcher is None else launcher.event.start_ns)
        if number is not None:
            key = (number, NOBODY, FORWARD) if launcher is None else (number, launcher.owner, launcher.direction)
            on_device.append((kernel.start_ns, kernel.end_ns, key))
    gpu_ns = shared_out(on_device)

    keys = list(dict.fromkeys((*entered, *cpu_ns, *gpu_ns)))
    return [
        Attributed(
            wall_s=sum(mark.end_ns - mark.start_ns for mark in marks if numbers[mark.name] == number) * _NANOSECOND,
            rows=tuple(
                Row(
                    owner=key[1],
                    direction=key[2],
                    cpu_s=cpu_ns.get(key, 0.0) * _NANOSECOND,
                    gpu_s=gpu_ns.get(key, 0.0) * _NANOSECOND,
                    calls=entered.get(key, 0),
                )
                for key in keys
                if key[0] == number
            ),
        )
        for number in range(max(1, len(numbers)))
    ]


class _BackwardPass:
    """When the backward pass ran, by thread. On a GPU it has a thread of its own, and the caller waits for it."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        by_thread: dict[int, list[Span]] = {}
        for node in nodes:
            if node.event.is_node and (node.parent is None or not node.parent.in_backward):
                by_thread.setdefault(node.event.thread, []).append((node.event.start_ns, node.event.end_ns))
        self.all = merged(span for spans in by_thread.values() for span in spans)
        self.elsewhere = {
            thread: merged(span for other, spans in by_thread.items() if other != thread for span in spans)
            for thread in {node.event.thread for node in nodes}
        }
        self.callers = {node.event.forward_thread for node in nodes if node.event.is_node and node.event.sequence >= 0}


def _own_ns(node: Node, backward: _BackwardPass) -> int:
    """An event's own time on the CPU, without its waits for the backward pass in another thread.

    A label of a thread that had no forward pass, such as one that loads data, waits for nothing.
    """
    event = node.event
    ours = event.name.startswith(OURS)
    if not node.children and not ours and not event.is_label:
        return event.end_ns - event.start_ns
    own = node.own_spans()
    waits = ours or (event.is_label and event.thread in backward.callers)
    waited_ns = sum(overlap(span, backward.elsewhere[event.thread]) for span in own) if waits else 0
    return sum(end - start for start, end in own) - waited_ns


def settled_nodes(events: Events) -> list[Node]:
    """Every event of the CPU as a node with its owner and direction, an outer one before those inside it."""
    nodes: list[Node] = []
    open_nodes: list[Node] = []
    for event in sorted(events.cpu, key=lambda e: (e.thread, e.start_ns, -e.end_ns)):
        while open_nodes and not _holds(open_nodes[-1].event, event):
            open_nodes.pop()
        node = Node(event=event, parent=open_nodes[-1] if open_nodes else None)
        if node.parent is not None:
            node.parent.children.append(node)
        nodes.append(node)
        open_nodes.append(node)
    _settle(nodes)
    return nodes


def _holds(outer: CpuEvent, inner: CpuEvent) -> bool:
    return outer.thread == inner.thread and outer.start_ns <= inner.start_ns and inner.end_ns <= outer.end_ns


def _settle(nodes: Sequence[Node]) -> None:
    """Give every node its owner and direction: forward ones by what is around them, backward ones by their forward.

    A node of the backward pass belongs to the latest-started forward event that has its thread and sequence number:
    outer operators carry the number of the inner one that made the node. Nodes are taken in order of time, because
    the node of an event that is computed again in the backward pass comes after it.
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
            node.owner, node.direction = parent.owner, parent.direction
            if parent.event.is_node:
                _settle_in_backward(node, parent, known, labels)
        _open_range(node, labels)
        if event.sequence >= 0:
            made_by[event.thread, event.sequence] = node


class _Labels:
    """Which labels hold what runs in the backward pass.

    `latest` is the event of each thread that began last. `opened` has, by the name of a range, the labels around it
    when it was opened last in the forward pass.
    """

    def __init__(self) -> None:
        self.latest: dict[int, Node] = {}
        self.opened: dict[str, tuple[str, ...]] = {}
        self._callers: dict[int, int] = {}

    def around(self, node: Node) -> tuple[str, ...]:
        """The labels that are open around a node, in its thread or in the one that started it.

        On a GPU the engine has a thread of its own, and the caller waits with its labels open. It is taken to be the
        thread of the forward pass.
        """
        event, parent = node.event, node.parent
        if parent is not None:
            return parent.around if parent.event.is_node else parent.owner.labels
        if event.sequence >= 0:
            self._callers[event.thread] = event.forward_thread
        here = self.latest.get(self._callers.get(event.thread, event.thread))
        while here is not None and here.event.end_ns <= event.start_ns:
            here = here.parent
        return here.owner.labels if here is not None else ()


def _joined(outer: tuple[str, ...], inner: tuple[str, ...]) -> tuple[str, ...]:
    """Labels of both, each once."""
    return tuple(dict.fromkeys((*outer, *inner))) if outer else inner


def _settle_backward(node: Node, made_by: dict[tuple[int, int], Node], owners: dict[int, str], labels: _Labels) -> None:
    event, parent = node.event, node.parent
    node.direction = BACKWARD
    forward = made_by.get((event.forward_thread, event.sequence)) or made_by.get((event.thread, event.sequence))
    if event.sequence >= 0 and forward is not None:
        node.owner = forward.owner.held_by(_joined(node.around, forward.owner.labels))
    elif id(node) in owners:
        module = owners[id(node)]
        node.owner = Owner(module=module, labels=_joined(node.around, labels.opened.get(MODULE + module, ())))
    elif parent is not None and parent.event.is_node:
        node.owner = parent.owner
    elif node.around:
        node.owner = Owner(labels=node.around)


def _settle_in_backward(node: Node, parent: Node, known: set[str], labels: _Labels) -> None:
    """Forward code that runs inside a node of the backward pass is work of that node, or is computed again."""
    held_by = None
    if _CHECKPOINT not in parent.event.name and (node.event.sequence >= 0 or node.event.is_range):
        # The labels around what is computed again are those around the first range in it.
        ranges = (labels.opened.get(child.event.name) for child in parent.children)
        first = next((found for found in ranges if found is not None), None)
        held_by = None if first is None else _joined(parent.around, first)
    if node.event.sequence >= 0 and (owner := _computed_again(parent, known)) is not None:
        node.owner, node.direction = owner, RECOMPUTE
    if held_by is not None:
        node.owner = node.owner.held_by(held_by)


def _computed_again(node: Node, known: set[str]) -> Owner | None:
    """Whose work a backward node repeats outside of modules; None where it repeats none.

    A checkpoint computes forward code again inside a node: its own, where it is reentrant and runs a backward pass in
    there too; else that of the first operator that needs what was not kept, of whatever module. Then only the modules
    that are called again show whose function it was: that of the nearest known module around all of them.
    """
    if _CHECKPOINT in node.event.name:
        return node.owner
    called = [child.event.name[len(MODULE) :] for child in node.children if child.event.name.startswith(MODULE)]
    steps = zip(*(path.split(".")[:-1] for path in called), strict=False)
    around = ".".join(step[0] for step in takewhile(lambda step: len(set(step)) == 1, steps))
    while around and around not in known:
        around = around.rpartition(".")[0]
    return Owner(module=around) if around else None


def _open_range(node: Node, labels: _Labels) -> None:
    name, outer, around = node.event.name, node.owner.module, node.owner.labels
    if name.startswith(MODULE):
        node.owner = Owner(module=name[len(MODULE) :], labels=around)
        node.direction = RECOMPUTE if node.in_backward else FORWARD
    elif name.startswith(LABEL) or node.event.is_label:
        own = name.removeprefix(LABEL)
        node.owner = Owner(module=outer, label=own, labels=_joined(around, (own,)))
    elif name.startswith(STAGE):
        node.owner = Owner(stage=name[len(STAGE) :], labels=around)
        return
    else:
        return
    node.opens = True
    if not node.in_backward:
        labels.opened[name] = around


def _gradient_owners(nodes: Sequence[Node]) -> dict[int, str]:
    """The module of every node that added up a gradient, and of the nodes right above it."""
    owners: dict[int, str] = {}
    for node in nodes:
        if not node.event.name.startswith(PARAMETER):
            continue
        above = node.parent
        while above is not None and above.event.is_node and _CHECKPOINT not in above.event.name:
            owners[id(above)] = node.event.name[len(PARAMETER) :]
            above = above.parent
    return owners
