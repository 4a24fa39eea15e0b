"""Operators of a recording as text files: all of them, the named ranges alone, by module, and by stack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from speechmeter.meters.modules import names
from speechmeter.meters.modules.tree import BACKWARD, Node
from speechmeter.meters.operator_use import used_by_operators
from speechmeter.meters.recording.recording import Recording

ALL_FILE, RANGES_FILE = "operators.txt", "ranges.txt"
MODULES_FILE, STACKS_FILE = "operators-by-module.txt", "operators-by-stack.txt"
_MOST = 200
_PLAIN = (names.MODULE, names.LABEL, names.STAGE)
_US = 1e-3
"""Microseconds in a nanosecond."""

Key = tuple[str, ...]


def write_texts(folder: Path, *recordings: Recording, memory: Recording | None = None) -> None:
    """The files of all steps of the recordings together, into a folder that is made when it is missing.

    `memory` is a recording with allocations, if there is one: columns of `operators.txt` are made from it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    used = [_used(recording) for recording in recordings]
    operators, ranges = ([one for pair in used for one in pair[place]] for place in (0, 1))
    beside = _beside(recordings, memory)
    stack_of = _Stacks()
    for name, text in {
        ALL_FILE: _lines(("operator",), operators, lambda node: (node.event.name,), beside),
        RANGES_FILE: _lines(("range",), ranges, lambda node: (_range_name(node),)),
        MODULES_FILE: _lines(
            ("module", "direction", "operator"),
            operators,
            lambda node: (node.place.module or "(outside)", node.direction if node.place.module else "", _name(node)),
        ),
        STACKS_FILE: _lines(("stack",), operators, lambda node: (stack_of(node),)),
    }.items():
        (folder / name).write_text(text, encoding="utf-8")


Beside = Mapping[str, Mapping[str, str]]
"""Columns by their heading: the text of each operator."""


def _beside(recordings: Sequence[Recording], memory: Recording | None) -> Beside:
    """Time with what is inside an operator; and memory in a call, with that and without, of the CPU and a GPU."""
    total_ns: Counter[str] = Counter()
    for recording in recordings:
        for name, use in used_by_operators(recording, _event_name).items():
            total_ns[name] += sum(use.total_ns)
    found = {"CPU µs with inside": {name: f"{spent * _US:.1f}" for name, spent in total_ns.items()}}
    if memory is None:
        return found
    for device in ("CPU", "CUDA") if memory.on_cuda else ("CPU",):
        held = used_by_operators(memory, _event_name, on_gpu=device == "CUDA")
        found[f"{device} KiB a call"] = {name: _kib(use.bytes) for name, use in held.items()}
        found[f"own {device} KiB"] = {name: _kib(use.own_bytes) for name, use in held.items()}
    return found


def _event_name(node: Node) -> str:
    return node.event.name


def _kib(steps: Sequence[int]) -> str:
    return f"{sum(steps) / len(steps) / 1024:,.1f}"


@dataclass(slots=True, kw_only=True)
class _Used:
    """An event of a step: nanoseconds of the CPU and, by its order, of the GPU. A range's hold what is inside it."""

    node: Node
    cpu_ns: int
    gpu_ns: int = 0


def _used(recording: Recording) -> tuple[list[_Used], list[_Used]]:
    """Operators and nodes, and named ranges."""
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
            backward = f"{one.place.module} (backward)" if begins and one.place.module else ""
            own = _name(one) if not one.event.is_range or _range_name(one) else ""
            text = " > ".join(part for part in (text, backward, own) if part)
            self._known[id(one)] = text
        return text


@dataclass(slots=True)
class _Sum:
    cpu_ns: int = 0
    gpu_ns: int = 0
    calls: int = 0


def _lines(heads: Key, rows: Sequence[_Used], key: Callable[[Node], Key], beside: Beside = MappingProxyType({})) -> str:
    """One line a key, the costliest first: microseconds of the CPU, their share, those of the GPU, calls."""
    sums: dict[Key, _Sum] = {}
    for used in rows:
        one = sums.setdefault(key(used.node), _Sum())
        one.cpu_ns += used.cpu_ns
        one.gpu_ns += used.gpu_ns
        one.calls += 1
    if not sums:
        return "nothing ran\n"
    nested = heads == ("range",)  # ranges lie in each other: shares would not add up
    total = sum(one.cpu_ns for one in sums.values()) or 1
    ordered = sorted(sums.items(), key=lambda item: (-item[1].gpu_ns, -item[1].cpu_ns))
    table = [("CPU µs" if nested else "own CPU µs", "" if nested else "share", "GPU µs", "calls", *beside, *heads)]
    for name, one in ordered[:_MOST]:
        share = "" if nested else f"{one.cpu_ns / total:.1%}"
        more = (column.get(name[0], "") for column in beside.values())
        table.append((f"{one.cpu_ns * _US:.1f}", share, f"{one.gpu_ns * _US:.1f}", str(one.calls), *more, *name))
    left = len(sums) - _MOST
    aligned = _aligned(table, len(table[0]) - len(heads))
    return "\n".join([*aligned, *([f"{left} more with less"] if left > 0 else []), ""])


def _aligned(rows: Sequence[Sequence[str]], numbers: int) -> list[str]:
    """So many numbers to the right, words to the left."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        "  ".join(
            cell.rjust(width) if place < numbers else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
