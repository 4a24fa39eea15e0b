"""What the operators of a recording used with all that runs inside them, and text files of it.

The files list all operators, the named ranges alone, operators by module, and operators by stack.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from speechmeter.meters.recording import label
from speechmeter.meters.recording.attribution import BACKWARD, Node
from speechmeter.meters.recording.recording import Recording

ALL_FILE, RANGES_FILE = "operators.txt", "ranges.txt"
MODULES_FILE, STACKS_FILE = "operators-by-module.txt", "operators-by-stack.txt"
_MOST = 200
_PLAIN = (label.MODULE, label.LABEL, label.STAGE)
_US = 1e-3
"""Microseconds in a nanosecond."""

Name = Callable[[Node], str | None]
"""What an event is called in a table; None for one that has no row."""
Key = tuple[str, ...]
Columns = Mapping[str, Mapping[str, str]]
"""Columns by their heading: the text of each operator."""


@dataclass
class Use:
    """What one operator used, a value a step. `own_bytes` are without what is inside it.

    Bytes are those that were allocated minus those that were freed, as in torch's own table.
    """

    steps: int
    calls: list[int] = field(init=False)
    total_ns: list[int] = field(init=False)
    bytes: list[int] = field(init=False)
    own_bytes: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.calls, self.total_ns, self.bytes, self.own_bytes = ([0] * self.steps for _ in range(4))

    def put(self, first: int, other: Use) -> None:
        """Take over the steps of another, which begin here at this one."""
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
    spent = None
    if kernels:
        by_id = recording.events.kernel_ns()
        own_ns = {id(node): by_id[node.event.id] for node in recording.nodes if node.event.id in by_id}
        spent = _with_inside(recording.nodes, own_ns)
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


def _own_bytes(recording: Recording, *, on_gpu: bool) -> dict[int, int]:
    """Bytes by event: what was allocated minus what was freed while nothing inside it ran."""
    by_thread: dict[int, list[Node]] = {}
    for node in recording.nodes:  # in each thread in order of their starts
        by_thread.setdefault(node.event.thread, []).append(node)
    starts = {thread: [node.event.start_ns for node in nodes] for thread, nodes in by_thread.items()}
    found: dict[int, int] = {}
    for change in recording.events.memory:
        latest = bisect_right(starts.get(change.thread, ()), change.at_ns) - 1
        here = by_thread[change.thread][latest] if change.on_gpu is on_gpu and latest >= 0 else None
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


def write_texts(folder: Path, *recordings: Recording, memory: Recording | None = None) -> None:
    """The files of all steps of the recordings together, into a folder that is made when it is missing.

    `memory` is a recording with allocations, if there is one: columns of `operators.txt` are made from it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    operators: list[_Used] = []
    ranges: list[_Used] = []
    for recording in recordings:
        worked, named = _operators_and_ranges(recording)
        operators += worked
        ranges += named
    columns = _columns(recordings, memory)
    stack_of = _Stacks()
    for name, text in {
        ALL_FILE: _lines(("operator",), operators, lambda node: (node.event.name,), columns),
        RANGES_FILE: _lines(("range",), ranges, lambda node: (_range_name(node),)),
        MODULES_FILE: _lines(
            ("module", "direction", "operator"),
            operators,
            lambda node: (node.owner.module or "(outside)", node.direction if node.owner.module else "", _name(node)),
        ),
        STACKS_FILE: _lines(("stack",), operators, lambda node: (stack_of(node),)),
    }.items():
        (folder / name).write_text(text, encoding="utf-8")


def _columns(recordings: Sequence[Recording], memory: Recording | None) -> Columns:
    """Time with what is inside an operator; and memory in a call, with that and without, of the CPU and a GPU."""
    total_ns: Counter[str] = Counter()
    for recording in recordings:
        for name, use in used_by_operators(recording, lambda node: node.event.name).items():
            total_ns[name] += sum(use.total_ns)
    found = {"total CPU µs": {name: f"{spent * _US:.1f}" for name, spent in total_ns.items()}}
    if memory is None:
        return found
    for device in ("CPU", "CUDA") if memory.on_cuda else ("CPU",):
        held = used_by_operators(memory, lambda node: node.event.name, on_gpu=device == "CUDA")
        found[f"{device} KiB a call"] = {name: _mean_kib(use.bytes) for name, use in held.items()}
        found[f"own {device} KiB"] = {name: _mean_kib(use.own_bytes) for name, use in held.items()}
    return found


def _mean_kib(steps: Sequence[int]) -> str:
    return f"{sum(steps) / len(steps) / 1024:,.1f}"


@dataclass(slots=True, kw_only=True)
class _Used:
    """An event of a step: nanoseconds of the CPU and, of its kernels, of the GPU. A range's include what is inside."""

    node: Node
    cpu_ns: int
    gpu_ns: int = 0


def _operators_and_ranges(recording: Recording) -> tuple[list[_Used], list[_Used]]:
    gpu_ns = recording.events.kernel_ns()
    operators = [
        _Used(node=node, cpu_ns=node.own_ns(), gpu_ns=gpu_ns.get(node.event.id, 0)) for node, *_ in recording.operators
    ]
    ranges: dict[int, _Used] = {}
    for node in recording.nodes:
        event = node.event
        if event.is_range and _range_name(node) and recording.step_at(event.start_ns) is not None:
            ranges[id(node)] = _Used(node=node, cpu_ns=event.end_ns - event.start_ns)
    for used in operators:
        above = used.node.parent if used.gpu_ns else None
        while above is not None:
            if id(above) in ranges:
                ranges[id(above)].gpu_ns += used.gpu_ns
            above = above.parent
    return operators, list(ranges.values())


def _range_name(node: Node) -> str:
    """The plain name of a module, label, stage or range of somebody else; empty for a mark that is none of these."""
    own = node.event.name
    prefix = next((one for one in _PLAIN if own.startswith(one)), "")
    return own.removeprefix(prefix) if prefix or node.event.is_label else ""


def _name(node: Node) -> str:
    return _range_name(node) or node.event.name


class _Stacks:
    """What was open around an operator as text, outermost first; the module whose backward pass begins has a frame too.

    The stack of an event is made once, for all that is inside it: most of them share it.
    """

    def __init__(self) -> None:
        self._known: dict[int, str] = {}

    def __call__(self, node: Node) -> str:
        above: list[Node] = []
        here: Node | None = node
        while here is not None and id(here) not in self._known:
            above.append(here)
            here = here.parent
        text = self._known[id(here)] if here is not None else ""
        for one in reversed(above):
            begins = one.direction == BACKWARD and (one.parent is None or one.parent.direction != BACKWARD)
            backward = f"{one.owner.module} (backward)" if begins and one.owner.module else ""
            own = _name(one) if not one.event.is_range or _range_name(one) else ""
            text = " > ".join(part for part in (text, backward, own) if part)
            self._known[id(one)] = text
        return text


def _lines(
    heads: Key, rows: Sequence[_Used], key: Callable[[Node], Key], columns: Columns = MappingProxyType({})
) -> str:
    """One line a key, the costliest first: microseconds of the CPU, their share, those of the GPU, calls."""
    sums: dict[Key, list[int]] = {}
    for used in rows:
        one = sums.setdefault(key(used.node), [0, 0, 0])
        one[:] = one[0] + used.cpu_ns, one[1] + used.gpu_ns, one[2] + 1
    if not sums:
        return "nothing ran\n"
    nested = heads == ("range",)  # ranges lie in each other: shares would not add up
    total_ns = sum(cpu_ns for cpu_ns, _, _ in sums.values()) or 1
    ordered = sorted(sums.items(), key=lambda item: (-item[1][1], -item[1][0]))
    table = [("CPU µs" if nested else "own CPU µs", "" if nested else "share", "GPU µs", "calls", *columns, *heads)]
    for name, (cpu_ns, gpu_ns, calls) in ordered[:_MOST]:
        share = "" if nested else f"{cpu_ns / total_ns:.1%}"
        more = (column.get(name[0], "") for column in columns.values())
        table.append((f"{cpu_ns * _US:.1f}", share, f"{gpu_ns * _US:.1f}", str(calls), *more, *name))
    numbers = len(table[0]) - len(heads)  # these columns are aligned to the right, the names to the left
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = []
    for row in table:
        sides = [str.rjust] * numbers + [str.ljust] * len(heads)
        cells = [side(cell, width) for side, cell, width in zip(sides, row, widths, strict=True)]
        lines.append("  ".join(cells).rstrip())
    left = len(sums) - _MOST
    return "\n".join([*lines, *([f"{left} more that took less time"] if left > 0 else []), ""])
