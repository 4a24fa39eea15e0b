"""Count the arithmetic of a call: by operator, module and phase, with what was not counted. Imports torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils.flop_counter import FlopCounterMode, flop_registry

from speechmeter.meters.flops import kinds
from speechmeter.meters.flops.formulas import mappings

Phase = Literal["forward", "backward", "recompute"]
OUTSIDE = ""
"""The module of operators that run outside every module."""


@dataclass(kw_only=True)
class Tally:
    """What one operator did inside one module in one phase."""

    kind: str
    calls: int = 0
    flops: int = 0
    element_ops: int = 0
    bytes: int = 0

    def add(self, flops: int, element_ops: int, moved_bytes: int) -> None:
        """One more call."""
        self.calls += 1
        self.flops += flops
        self.element_ops += element_ops
        self.bytes += moved_bytes

    def merge(self, other: Tally) -> None:
        """Add what another tally holds."""
        self.calls += other.calls
        self.flops += other.flops
        self.element_ops += other.element_ops
        self.bytes += other.bytes


@dataclass(frozen=True, kw_only=True)
class Count:
    """All operators of a call: (phase, module path, operator) → tally. Modules are exclusive: the innermost one."""

    tallies: Mapping[tuple[Phase, str, str], Tally] = field(default_factory=dict)

    @property
    def forward(self) -> float:
        """Matrix arithmetic outside the backward pass, in FLOPs, 2 per multiply-accumulate."""
        return float(sum(t.flops for (phase, _, _), t in self.tallies.items() if phase == "forward"))

    @property
    def backward(self) -> float:
        """Matrix arithmetic inside the backward pass, recomputed forward parts included."""
        return float(sum(t.flops for (phase, _, _), t in self.tallies.items() if phase != "forward"))

    @property
    def arithmetic(self) -> bool:
        """Whether any operator computed something; NumPy's results, wrapped as tensors, only move."""
        return any(t.kind in (kinds.MATRIX, kinds.ELEMENTS, kinds.UNKNOWN) for t in self.tallies.values())

    @property
    def recompute(self) -> float:
        """The part of the backward pass that repeats forward work (checkpointing)."""
        return float(sum(t.flops for (phase, _, _), t in self.tallies.items() if phase == "recompute"))

    @property
    def element_ops(self) -> float:
        """Arithmetic by the element: activations, normalisations, softmax, sums."""
        return float(sum(t.element_ops for t in self.tallies.values()))

    @property
    def bytes(self) -> float:
        """Bytes that operators read and write, each tensor once an operator."""
        return float(sum(t.bytes for t in self.tallies.values()))

    def by_operator(self) -> dict[str, Tally]:
        """Tallies of each operator over all modules and phases."""
        return self._merged(lambda phase, module, operator: operator)

    def by_module(self) -> dict[str, Tally]:
        """Forward tallies of each module, those of the modules inside it included; `OUTSIDE` is the rest."""
        exclusive = self._merged(lambda phase, module, operator: module if phase == "forward" else None)
        return _rolled_up(exclusive)

    def by_module_backward(self) -> dict[str, Tally]:
        """The same for the backward pass."""
        exclusive = self._merged(lambda phase, module, operator: module if phase != "forward" else None)
        return _rolled_up(exclusive)

    def unknown(self) -> dict[str, int]:
        """Operators that ran, with their calls, of which nobody here knows what they compute."""
        return {name: t.calls for name, t in self.by_operator().items() if t.kind == kinds.UNKNOWN}

    def _merged(self, key: Callable[[str, str, str], str | None]) -> dict[str, Tally]:
        merged: dict[str, Tally] = {}
        for (phase, module, operator), tally in self.tallies.items():
            name = key(phase, module, operator)
            if name is not None:
                merged.setdefault(name, Tally(kind=tally.kind)).merge(tally)
        return merged


def _rolled_up(exclusive: Mapping[str, Tally]) -> dict[str, Tally]:
    rolled: dict[str, Tally] = {}
    for path, tally in exclusive.items():
        parts = path.split(".")
        for depth in range(1, len(parts) + 1):
            rolled.setdefault(".".join(parts[:depth]), Tally(kind=tally.kind)).merge(tally)
    return rolled


def together(counts: Iterable[Count]) -> Count:
    """One count of several pieces of work: two of them may run the same operator in the same module."""
    tallies: dict[tuple[Phase, str, str], Tally] = {}
    for part in counts:
        for key, tally in part.tallies.items():
            tallies.setdefault(key, Tally(kind=tally.kind)).merge(tally)
    return Count(tallies=tallies)


def count(call: Callable[[], Any], modules: Mapping[str, Any] | None = None, path: RunningPath | None = None) -> Count:
    """Run the call once and count it. `modules` are root modules by name; without them nothing is split by module.

    Several calls that share a `path` may hold the forward and the backward pass of one graph.
    """
    with counting(modules or {}, path) as counted:
        call()
    return counted


@contextmanager
def counting(modules: Mapping[str, Any], path: RunningPath | None = None) -> Iterator[Count]:
    """The same for what runs while this is open; the count is whole when it is closed."""
    counter = _Counter(path or RunningPath())
    with _following(counter.path, modules), counter:
        yield Count(tallies=counter.tallies)


class RunningPath:
    """Which module is running, and which ran when an autograd node was made."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.stack: list[str] = []
        self.by_node: dict[int, str] = {}

    def enter(self, module: Any, inputs: Any) -> None:
        """The hook before a module's call."""
        self.stack.append(self.names.get(id(module), self.stack[-1] if self.stack else OUTSIDE))

    def leave(self, module: Any, inputs: Any, output: Any) -> None:
        """The hook after it."""
        self.stack.pop()

    def now(self) -> tuple[Phase, str]:
        """The phase and module of the operator that runs."""
        inner = self.stack[-1] if self.stack else OUTSIDE
        if torch._C._current_graph_task_id() < 0:
            if torch.is_grad_enabled():
                self.by_node[torch.autograd._get_sequence_nr() - 1] = inner  # its node was made just before
            return "forward", inner
        if self.stack:
            return "recompute", inner
        node = torch._C._current_autograd_node()
        return "backward", self.by_node.get(node._sequence_nr(), OUTSIDE) if node is not None else OUTSIDE


class _Tracker:
    """What torch's counter asks for the running modules. Its own breaks in inference mode on parametrised weights."""

    parents = frozenset({"Global"})

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


class _Counter(FlopCounterMode):  # type: ignore[misc]
    """Torch's counter with our formulas, which also keeps what it has no formula for."""

    def __init__(self, path: RunningPath) -> None:
        super().__init__(display=False, custom_mapping=_formulas())
        self.mod_tracker = _Tracker()
        self.path = path
        self.tallies: dict[tuple[Phase, str, str], Tally] = {}

    def _count_flops(self, func_packet: Any, out: Any, args: Any, kwargs: Any) -> Any:
        if str(func_packet).startswith("prim."):  # a question about a tensor, no work
            return out
        formula = self.flop_registry.get(func_packet)
        flops = int(formula(*args, **kwargs, out_val=out)) if formula is not None else 0
        kind, element_ops = (kinds.MATRIX, 0) if formula is not None else _element_ops(func_packet, args, out)
        phase, module = self.path.now()
        key = (phase, module, str(func_packet).replace(".", "::", 1))
        tally = self.tallies.get(key)
        if tally is None:
            tally = self.tallies[key] = Tally(kind=kind)
        tally.add(flops, element_ops, 0 if _free(func_packet) else _bytes(args) + _bytes((out,)))
        return out


def has_formula(packet: Any) -> bool:
    """Whether the FLOPs of an operator are known: it is matrix arithmetic."""
    return packet in _formulas() or packet in flop_registry


@cache
def _formulas() -> dict[Any, Any]:
    return mappings()


def _element_ops(packet: Any, args: Any, out: Any) -> tuple[str, int]:
    if not hasattr(packet, "overloads"):  # a Triton kernel or a higher-order operator
        return kinds.UNKNOWN, 0
    kind, each, of_input = kinds.kind_of(packet)
    return kind, each * _elements(args if of_input else (out,)) if each else 0


def _elements(values: Any) -> int:
    """Elements of the first tensor found."""
    for value in values:
        if isinstance(value, torch.Tensor):
            return int(value.numel())
        if isinstance(value, list | tuple) and (found := _elements(value)):
            return found
    return 0


def _bytes(values: Any) -> int:
    total = 0
    for value in values:
        if isinstance(value, torch.Tensor):
            total += value.numel() * value.element_size()
        elif isinstance(value, list | tuple):
            total += _bytes(value)
    return total


@cache
def _free(packet: Any) -> bool:
    """Whether an operator touches no data: a view, or an allocation that is not filled."""
    if not hasattr(packet, "overloads"):
        return True
    empties = packet.__name__.startswith(("empty", "new_empty", "_local_scalar", "detach", "lift_fresh", "alias"))
    return empties or any(getattr(packet, overload).is_view for overload in packet.overloads())


@contextmanager
def _following(path: RunningPath, modules: Mapping[str, Any]) -> Iterator[None]:
    for root, module in modules.items():
        for name, part in module.named_modules() if hasattr(module, "named_modules") else ():
            path.names.setdefault(id(part), f"{root}.{name}" if name else root)
    before = register_module_forward_pre_hook(path.enter)
    after = register_module_forward_hook(path.leave, always_call=True)
    try:
        yield
    finally:
        before.remove()
        after.remove()
