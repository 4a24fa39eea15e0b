"""Cases side by side: what differs between them, and cells that differ in the machine or in the input alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from speechmeter.analysis.compare import Verdict, verdict
from speechmeter.analysis.estimate import Estimate
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.protocol import differences
from speechmeter.core.types import BATCHES, CONTENT_HASHES, Case, Record

MIN_EFFECT = 0.05
"""What a difference between machines or inputs must exceed to be called one."""
SAME_CODE_FIX = "install the project in both environments (pip install .), and run the command from another directory"
"""The way out where two interpreters load the same."""
NOISE = "noise"
RATIO = "of inputs"
"""The statistic of a ratio between two inputs."""
_OF_THE_MACHINE = ("device", "threads", "cores")
CODE_FACTS = ("git", "packages", "python", "interpreter", "code")
"""Facts that two environments may differ in when their code is what is compared; they are named beside the verdict."""

_FOLLOWS = "leading_packages"
"""A fact that follows from the packages, whose differences are named one by one."""


def case_differences(base: Case, new: Case, ignored: Sequence[str]) -> list[str]:
    """How two cases of one cell differ in protocol or axes, in words; empty when they may be compared."""
    pairs: list[tuple[str, Any, Any]] = [
        (name, base.axes.get(name), new.axes.get(name))
        for name in dict.fromkeys([*base.axes, *new.axes])
        if name not in ignored
    ]
    pairs += differences(base.protocol, new.protocol)
    pairs.append(("workload", base.workload.to_json(), new.workload.to_json()))
    return [f"{name}: {old!r} in BASE, {fresh!r} in NEW" for name, old, fresh in pairs if old != fresh]


def batch_differences(base: Sequence[Record], new: Sequence[Record]) -> list[str]:
    """Where the times of two cases are of other numbers of batches, in words; empty when they may be compared.

    Runs of earlier versions measured all batches of a schedule, later ones those of its active steps.
    """
    old, fresh = (
        next((int(m.notes.get(BATCHES, 1)) for r in side if (m := r.find(metrics.LATENCY.id)) and m.values), None)
        for side in (base, new)
    )
    differ = old is not None and fresh is not None and old != fresh
    return [f"measured batches: {old} in BASE, {fresh} in NEW"] if differ else []


def same_code(base: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """What two interpreters both loaded, in words, where nothing of the code differs; empty where something does.

    Facts of older versions do not say what was loaded: then nothing can be said.
    """
    ours, theirs = base.get("code"), new.get("code")
    if not isinstance(ours, Mapping) or not isinstance(theirs, Mapping) or base.get("python") != new.get("python"):
        return ""
    if any(ours.get(key) is None or ours.get(key) != theirs.get(key) for key in ("digest", "versions")):
        return ""
    modules = ours.get("modules")
    here = [name for name, origin in modules.items() if origin == "working folder"] if isinstance(modules, dict) else []
    return (
        f"both import {', '.join(here)} from the current directory"
        if here
        else "both import the same files and package versions"
    )


def environment_differences(
    base: Mapping[str, Any], new: Mapping[str, Any], sides: tuple[str, str] = ("in BASE", "in NEW")
) -> tuple[list[str], list[str]]:
    """(differences of the machine, differences of the code) between the facts of two environments."""
    machine: list[str] = []
    code: list[str] = []
    for name in dict.fromkeys([*base, *new]):
        if name == _FOLLOWS:
            continue
        texts = _changes(name, base.get(name), new.get(name), sides)
        (code if name in CODE_FACTS else machine).extend(texts)
    return machine, code


def _changes(name: str, old: Any, fresh: Any, sides: tuple[str, str]) -> list[str]:
    """What differs, part by part where both are mappings."""
    if isinstance(old, dict) and isinstance(fresh, dict):
        keys = dict.fromkeys([*old, *fresh])
        return [text for key in keys for text in _changes(f"{name} {key}", old.get(key), fresh.get(key), sides)]
    return [] if old == fresh else [f"{name}: {old!r} {sides[0]}, {fresh!r} {sides[1]}"]


@dataclass(frozen=True, kw_only=True)
class SharedCell:
    """One cell by machine: the rounds of its case on each, in the order of the machines."""

    case: Case
    rounds: Mapping[str, Sequence[Record]]

    def verdicts(self, metric: Metric) -> dict[str, Verdict]:
        """Every machine after the first against the first."""
        (_, base), *others = self.rounds.items()
        return {name: verdict(base, new, metric, MIN_EFFECT, together=False) for name, new in others}


def shared_cells(machines: Mapping[str, Sequence[Sequence[Record]]]) -> list[SharedCell]:
    """The cells that at least two machines have, in the order in which the first of them has them.

    `machines` holds for each machine the groups of records of its cases.
    """
    if len(machines) < 2:
        return []
    cells: dict[str, list[tuple[str, Sequence[Record]]]] = {}
    for name, groups in machines.items():
        for group in groups:
            case = group[0].case
            axes = {axis: value for axis, value in case.axes.items() if axis not in _OF_THE_MACHINE}
            subject = [case.subject.plugin, case.subject.name, dict(case.subject.options)]
            workload = [case.workload.plugin, case.workload.name, dict(case.workload.options)]
            key = json.dumps([subject, workload, axes, case.protocol.to_json()], sort_keys=True)
            cells.setdefault(key, []).append((name, group))
    return [
        SharedCell(case=next(iter(rounds.values()))[0].case, rounds=rounds)
        for cell in cells.values()
        for rounds in _one_each(cell)
        if len(rounds) > 1
    ]


def _one_each(cell: Sequence[tuple[str, Sequence[Record]]]) -> list[dict[str, Sequence[Record]]]:
    """A cell by machine; apart by device, threads and cores where a machine has it more than once."""
    together = dict(cell)
    if len(together) == len(cell):
        return [together]
    apart: dict[tuple[Any, ...], dict[str, Sequence[Record]]] = {}
    for name, group in cell:
        apart.setdefault(tuple(group[0].case.axes.get(axis) for axis in _OF_THE_MACHINE), {})[name] = group
    return list(apart.values())


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The rounds of one case on noise, and of the same on real audio, which is called `name`."""

    noise: Sequence[Record]
    real: Sequence[Record]
    name: str

    def compared(self, metric: Metric) -> tuple[Verdict, Estimate | None]:
        """(the verdict on real against noise, their ratio); no ratio where a side has no figure or it is zero.

        Rounds that were measured next to each other are compared by pairs; a single round has no interval.
        """
        found = verdict(self.noise, self.real, metric, MIN_EFFECT, together=True)
        if found.ratio is None:
            return found, None
        samples = min(side.samples_per_round for side in (found.base, found.new) if side is not None)
        return found, Estimate(
            metric=metrics.REAL_OVER_NOISE, value=found.ratio, low=found.low, high=found.high, rounds=found.rounds,
            samples_per_round=samples, statistic=RATIO,
        )  # fmt: skip


def pairs(groups: Iterable[Sequence[Record]]) -> Iterator[Pair]:
    """Every case on real audio that was also measured on noise, in the order of the cases."""
    audio = [group for group in groups if group[0].case.workload.plugin == "audio"]
    on_noise = {_key_without_content(g[0].case): g for g in audio if g[0].case.workload.source == NOISE}
    for group in audio:
        case = group[0].case
        partner = on_noise.get(_key_without_content(case))
        if partner is not None and case.workload.source != NOISE:
            yield Pair(noise=partner, real=group, name=case.workload.name)


def _key_without_content(case: Case) -> str:
    """Everything about a case but what was fed."""
    options = {name: value for name, value in case.workload.options.items() if name not in CONTENT_HASHES}
    return json.dumps([case.subject.to_json(), dict(case.axes), case.protocol.to_json(), options], sort_keys=True)
