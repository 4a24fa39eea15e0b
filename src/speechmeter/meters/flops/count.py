"""Count the arithmetic of a call: by operator, module and phase, with what was not counted. Imports torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from speechmeter.meters.flops import kinds
from speechmeter.meters.flops.formulas import flops_of, is_strided, nested_flops_of, registry, tensors_of
from speechmeter.meters.flops.running import Phase, RunningPath, followed, in_new_threads, unseen_threads


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
    """All operators of a call: (phase, module path, operator) → tally. Modules are exclusive: the innermost one.

    `unseen` are operators, with their calls, that ran in threads which could not be followed.
    """

    tallies: Mapping[tuple[Phase, str, str], Tally] = field(default_factory=dict)
    unseen: Mapping[str, int] = field(default_factory=dict)

    @property
    def forward(self) -> float:
        """Matrix arithmetic outside the backward pass, in FLOPs, 2 per multiply-accumulate."""
        return float(sum(t.flops for (phase, _, _), t in self.tallies.items() if phase == "forward"))

    @property
    def backward(self) -> float:
        """Matrix arithmetic inside the backward pass, recomputed forward parts included."""
        return float(sum(t.flops for (phase, _, _), t in self.tallies.items() if phase != "forward"))

    @property
    def recompute(self) -> float:
        """The part of the backward pass that repeats forward work (checkpointing)."""
        return float(sum(t.flops for (phase, _, _), t in self.tallies.items() if phase == "recompute"))

    @property
    def arithmetic(self) -> bool:
        """Whether any operator computed something; NumPy's results, wrapped as tensors, only move."""
        return any(t.kind in (kinds.MATRIX, kinds.ELEMENTS, kinds.UNKNOWN) for t in self.tallies.values())

    @property
    def element_ops(self) -> float:
        """Arithmetic by the element: activations, normalisations, softmax, sums."""
        return float(sum(t.element_ops for t in self.tallies.values()))

    @property
    def bytes(self) -> float:
        """Bytes that operators read and write, each tensor once for each operator."""
        return float(sum(t.bytes for t in self.tallies.values()))

    def by_operator(self) -> dict[str, Tally]:
        """Tallies of each operator over all modules and phases."""
        merged: dict[str, Tally] = {}
        for (_, _, operator), tally in self.tallies.items():
            merged.setdefault(operator, Tally(kind=tally.kind)).merge(tally)
        return merged

    def by_module(self, *, backward: bool = False) -> dict[str, Tally]:
        """Forward or backward tallies of each module with the modules inside it; `OUTSIDE` is the rest."""
        rolled_up: dict[str, Tally] = {}
        for (phase, path, _), tally in self.tallies.items():
            parts = path.split(".") if (phase != "forward") is backward else []
            for depth in range(1, len(parts) + 1):
                rolled_up.setdefault(".".join(parts[:depth]), Tally(kind=tally.kind)).merge(tally)
        return rolled_up

    def unknown(self) -> dict[str, int]:
        """Operators that ran, with their calls, for which there is no formula and no convention."""
        return {name: t.calls for name, t in self.by_operator().items() if t.kind == kinds.UNKNOWN}


def together(counts: Iterable[Count]) -> Count:
    """One count of several pieces of work: two of them may run the same operator in the same module."""
    tallies: dict[tuple[Phase, str, str], Tally] = {}
    parts = list(counts)
    for part in parts:
        for key, tally in part.tallies.items():
            tallies.setdefault(key, Tally(kind=tally.kind)).merge(tally)
    unseen = {name: calls for part in parts for name, calls in part.unseen.items()}
    return Count(tallies=tallies, unseen=unseen)


def count(call: Callable[[], Any], modules: Mapping[str, Any] | None = None, path: RunningPath | None = None) -> Count:
    """Run the call once and count it. `modules` are root modules by name; without them nothing is split by module.

    Several calls that share a `path` may hold the forward and the backward pass of one graph.
    """
    with counting(modules or {}, path) as counted:
        call()
    return counted


@contextmanager
def counting(modules: Mapping[str, Any], path: RunningPath | None = None) -> Iterator[Count]:
    """The same for what runs while this is open; the count is complete when it is closed."""
    path = path or RunningPath()
    tallies = _Tallies()

    @contextmanager
    def in_thread(module: str) -> Iterator[None]:
        with path.continued(module), followed(), _Counter(path, tallies):
            yield

    with ExitStack() as stack:
        unseen = stack.enter_context(unseen_threads())
        stack.enter_context(path.following(modules))
        stack.enter_context(in_new_threads(lambda: in_thread(path.inner)))
        stack.enter_context(followed())
        stack.enter_context(_Counter(path, tallies))
        yield Count(tallies=tallies.by_key, unseen=unseen)


class _Tallies:
    """The tallies that all threads of a call write."""

    def __init__(self) -> None:
        self.by_key: dict[tuple[Phase, str, str], Tally] = {}
        self._lock = Lock()

    def add(self, key: tuple[Phase, str, str], kind: str, flops: int, element_ops: int, moved_bytes: int) -> None:
        with self._lock:
            self.by_key.setdefault(key, Tally(kind=kind)).add(flops, element_ops, moved_bytes)


class _Counter(TorchDispatchMode):  # type: ignore[misc]
    """Counts every operator of one thread by its formula, and keeps those that it has no formula for."""

    supports_higher_order_operators = True

    def __init__(self, path: RunningPath, tallies: _Tallies) -> None:
        super().__init__()
        self._path = path
        self._tallies = tallies

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator, taken apart where that is how torch runs it, and count it."""
        kwargs = kwargs or {}
        if isinstance(func, torch._ops.HigherOrderOperator):
            return self._higher_order(func, args, kwargs)
        if any(kind.__name__ == "NestedTensor" for kind in types):  # in the jagged layout
            return NotImplemented  # its own dispatch follows, on plain tensors, and comes back here for each of them
        strided = any(map(is_strided, tensors_of((*args, *kwargs.values()))))
        if func not in registry() and not strided and func is not torch.ops.prim.device.default:
            with self:
                whole = func.decompose(*args, **kwargs)
            if whole is not NotImplemented:
                return whole
        out = func(*args, **kwargs)
        if func.namespace != "prim":  # a question about a tensor, no work
            self._count(func._overloadpacket, out, args, kwargs, strided)
        return out

    def _higher_order(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Of a condition the branch that is taken; other operators of this kind are unknown."""
        if func is torch.ops.higher_order.cond:
            condition, if_true, if_false, operands = args
            with self:
                return (if_true if bool(condition) else if_false)(*operands)
        out = func(*args, **kwargs)
        self._tallies.add((*self._path.now(), f"higher_order::{func}"), kinds.UNKNOWN, 0, 0, 0)
        return out

    def _count(self, packet: Any, out: Any, args: Any, kwargs: Any, strided: bool) -> None:
        flops = (nested_flops_of if strided else flops_of)(packet, args, kwargs, out)
        kind, element_ops = kinds.MATRIX, 0
        if flops is None and not hasattr(packet, "overloads"):  # a Triton kernel or a higher-order operator
            kind = kinds.UNKNOWN
        elif flops is None:
            kind, each, of_input = kinds.kind_of(packet)
            first = next(tensors_of(args if of_input else (out,)), None) if each else None
            element_ops = each * int(first.numel()) if first is not None else 0
        moved = 0 if _free(packet) else _bytes(args) + _bytes((out,))
        name = str(packet).replace(".", "::", 1)
        self._tallies.add((*self._path.now(), name), kind, flops or 0, element_ops, moved)


def _bytes(values: Any) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors_of(values))


@cache
def _free(packet: Any) -> bool:
    """Whether an operator touches no data: a view, or an allocation that is not filled."""
    if not hasattr(packet, "overloads"):
        return True
    empties = packet.__name__.startswith(("empty", "new_empty", "_local_scalar", "detach", "lift_fresh", "alias"))
    return empties or any(getattr(packet, overload).is_view for overload in packet.overloads())
