"""What operators of a recording used with all that runs inside them: time, kernels and memory, step by step."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from speechmeter.meters.modules.tree import Node
from speechmeter.meters.recording.recording import Recording

Name = Callable[[Node], str | None]
"""What an event is called in a table; None for one that has no row."""


@dataclass
class Use:
    """Of one operator, a value a step. `own_bytes` are without what is inside it.

    Bytes are those that were allocated minus those that were freed, as torch's own table has them.
    """

    steps: int
    calls: list[int] = field(init=False)
    total_ns: list[int] = field(init=False)
    bytes: list[int] = field(init=False)
    own_bytes: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.calls, self.total_ns, self.bytes, self.own_bytes = ([0] * self.steps for _ in range(4))

    def put(self, first: int, other: Use) -> None:
        """Take over the steps of another, which stand here from this one on."""
        for name in ("calls", "total_ns", "bytes", "own_bytes"):
            getattr(self, name)[first : first + other.steps] = getattr(other, name)


def used_by_operators(
    recording: Recording, name: Name, credited: Name | None = None, *, kernels: bool = False, on_gpu: bool = False
) -> dict[str, Use]:
    """Use by name. `kernels` takes the time of kernels in place of the CPU's, `on_gpu` the memory of a GPU.

    What an event allocated itself goes to its `credited` name, which is its own unless another is given.
    """
    own_bytes = _own_bytes(recording, on_gpu=on_gpu)
    held = _with_inside(recording.nodes, own_bytes) if own_bytes else {}
    spent = _with_inside(recording.nodes, _own_kernels(recording)) if kernels else None
    found: dict[str, Use] = {}
    for node, step, is_outermost in recording.operators:
        event = node.event
        own = (credited or name)(node)
        if own is not None and id(node) in own_bytes:
            found.setdefault(own, Use(recording.steps)).own_bytes[step] += own_bytes[id(node)]
        called = name(node)
        if called is None:
            continue
        use = found.setdefault(called, Use(recording.steps))
        use.calls[step] += 1
        if is_outermost:  # or what is inside would count twice
            use.total_ns[step] += event.end_ns - event.start_ns if spent is None else spent.get(id(node), 0)
            use.bytes[step] += held.get(id(node), 0)
    return found


def _own_kernels(recording: Recording) -> dict[int, int]:
    by_id = recording.events.kernel_ns()
    return {id(node): by_id[node.event.id] for node in recording.nodes if node.event.id in by_id}


def _own_bytes(recording: Recording, *, on_gpu: bool) -> dict[int, int]:
    """Bytes by event: what was allocated minus what was freed while nothing inside it ran."""
    by_thread: dict[int, list[Node]] = {}
    for node in recording.nodes:  # in each thread in order of their starts
        by_thread.setdefault(node.event.thread, []).append(node)
    starts = {thread: [node.event.start_ns for node in nodes] for thread, nodes in by_thread.items()}
    found: dict[int, int] = {}
    for change in recording.events.memory:
        place = bisect_right(starts.get(change.thread, ()), change.at_ns) - 1
        here = by_thread[change.thread][place] if change.on_gpu is on_gpu and place >= 0 else None
        while here is not None and here.event.end_ns < change.at_ns:
            here = here.parent
        if here is not None:
            found[id(here)] = found.get(id(here), 0) + change.bytes
    return found


def _with_inside(nodes: Sequence[Node], own: Mapping[int, int]) -> dict[int, int]:
    """The same with what is inside each event; an outer one comes before those inside it."""
    found = dict(own)
    for node in reversed(nodes):
        if node.parent is not None and (amount := found.get(id(node))):
            found[id(node.parent)] = found.get(id(node.parent), 0) + amount
    return found
