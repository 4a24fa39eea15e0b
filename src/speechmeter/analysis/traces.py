"""Two traces, or two sets of them, compared: which operators, kernels and ranges changed, in number or in time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from speechmeter.core.traces import ANNOTATION, COPIES, KERNEL, MODULE, OPERATOR, STEP, Slice, Trace, nested

Kind = Literal["operator", "kernel", "label", "module"]
What = Literal["only in A", "only in B", "calls", "time"]
"""How something changed: one side has it, it ran more or less often, or only its time is different."""
_KINDS: dict[str, Kind] = {OPERATOR: "operator", KERNEL: "kernel", **dict.fromkeys(COPIES, "kernel")}
_CALL = "call"
"""The argument of a range of ours that only counts calls."""
_MICROSECOND = 1e-6
_OUTSIDE = "(outside modules)"
_ORDER: dict[What, int] = {"only in A": 0, "only in B": 0, "calls": 1, "time": 2}
LEAST_SHARE = 0.001
"""A change of time counts from this share of a step on: everything else is noise of one sample."""


@dataclass(kw_only=True)
class Tally:
    """How often something ran in all steps together, how long by itself, and in which modules."""

    calls: int = 0
    own_s: float = 0.0
    modules: Counter[str] = field(default_factory=Counter)

    def add(self, one: Slice) -> None:
        """Count a slice."""
        self.calls += 1
        self.own_s += one.own_us * _MICROSECOND
        self.modules[one.module or _OUTSIDE] += 1


@dataclass(frozen=True, kw_only=True)
class Change:
    """Calls and own seconds of one step in both traces; `where` are modules whose calls changed, with their change."""

    kind: Kind
    name: str
    calls: tuple[float, float]
    own_s: tuple[float, float]
    where: tuple[tuple[str, float], ...]

    @property
    def more_s(self) -> float:
        """How much longer the second takes."""
        return self.own_s[1] - self.own_s[0]

    @property
    def what(self) -> What:
        """How it changed."""
        if not all(self.calls):
            return "only in A" if self.calls[0] else "only in B"
        return "calls" if self.calls[0] != self.calls[1] else "time"


@dataclass(frozen=True, kw_only=True)
class TraceDiff:
    """What changed: first what one side alone has, then what ran more or less often, then what only took another time.

    Labels come first in each part, and what changed most in time. `steps` and `step_s` are of A and of B: how many
    steps there are, and the seconds of an average one.
    """

    changes: tuple[Change, ...]
    steps: tuple[int, int]
    step_s: tuple[float, float]


def trace_diff(
    first: Trace | Sequence[Trace], second: Trace | Sequence[Trace], *, min_effect: float = 0.1
) -> TraceDiff:
    """The changes of an average step from the first trace to the second; several traces on a side are added up.

    Time alone counts as changed from `min_effect` of the longer on, and from a thousandth of a step. The time of a
    label or module alone never does: it is that of what is inside, which has rows of its own.
    """
    one, other = _Read(first), _Read(second)
    floor_s = LEAST_SHARE * max(one.step_s, other.step_s)
    found = [_change(key, one, other) for key in dict.fromkeys([*one.tallies, *other.tallies])]
    kept = [
        c
        for c in found
        if c.what != "time"
        or (c.kind in ("operator", "kernel") and abs(c.more_s) >= max(floor_s, min_effect * max(c.own_s)))
    ]
    kept.sort(key=lambda c: (_ORDER[c.what], c.kind != "label", -abs(c.more_s)))
    return TraceDiff(changes=tuple(kept), steps=(one.steps, other.steps), step_s=(one.step_s, other.step_s))


class _Read:
    """The tallies of one trace or of several, and how many steps they are of."""

    def __init__(self, given: Trace | Sequence[Trace]) -> None:
        traces = [given] if isinstance(given, Trace) else given
        slices = [one for trace in traces for one in nested(trace.events)]
        self.tallies = tallies(slices)
        marks = [one for one in slices if one.name.startswith(STEP) and one.category == ANNOTATION]
        self.steps = max(1, len(marks))
        outer_us = sum(one.duration_us for one in marks or slices if one.parent is None)
        self.step_s = outer_us * _MICROSECOND / self.steps


def tallies(slices: Iterable[Slice]) -> dict[tuple[Kind, str], Tally]:
    """(kind, name) → what its slices add up to."""
    found: dict[tuple[Kind, str], Tally] = {}
    for one in slices:
        kind = _range_kind(one) if one.category == ANNOTATION else _KINDS.get(one.category)
        if kind is not None:
            found.setdefault((kind, one.name), Tally()).add(one)
    return found


def _range_kind(one: Slice) -> Kind | None:
    """A call of a module, or a label: whatever else names a range. Marks of steps and calls name nothing."""
    args = one.event.get("args") or {}
    if one.name.startswith(STEP) or _CALL in args:
        return None
    return "module" if args.get(MODULE) == one.name else "label"


def _change(key: tuple[Kind, str], one: _Read, other: _Read) -> Change:
    before, after = one.tallies.get(key, Tally()), other.tallies.get(key, Tally())
    moved = {
        path: after.modules[path] / other.steps - before.modules[path] / one.steps
        for path in dict.fromkeys([*before.modules, *after.modules])
    }
    return Change(
        kind=key[0],
        name=key[1],
        calls=(before.calls / one.steps, after.calls / other.steps),
        own_s=(before.own_s / one.steps, after.own_s / other.steps),
        where=tuple(sorted(((p, n) for p, n in moved.items() if n), key=lambda item: -abs(item[1]))),
    )
