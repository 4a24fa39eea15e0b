"""What two sides of a comparison were measured under: cases, machines and code that differ, or code that does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.types import BATCHES, Case, Record

CODE_FACTS = ("git", "packages", "python", "code")
"""Facts that two environments may differ in when their code is what is compared; they are named beside the verdict."""


def case_differences(base: Case, new: Case, ignored: Sequence[str]) -> list[str]:
    """How two cases of one cell differ in protocol or axes, in words; empty when they may be compared."""
    pairs: list[tuple[str, Any, Any]] = [
        (name, base.axes.get(name), new.axes.get(name))
        for name in dict.fromkeys([*base.axes, *new.axes])
        if name not in ignored
    ]
    pairs += [
        (name, base.protocol.get(name), new.protocol.get(name))
        for name in dict.fromkeys([*base.protocol, *new.protocol])
    ]
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


SAME_CODE_FIX = "install the project in both environments (pip install .), and start from another folder"
"""The way out where two interpreters load the same."""


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
    return f"both load {', '.join(here)} from the working folder" if here else "both load the same files and versions"


def environment_differences(
    base: Mapping[str, Any], new: Mapping[str, Any], sides: tuple[str, str] = ("in BASE", "in NEW")
) -> tuple[list[str], list[str]]:
    """(differences of the machine, differences of the code) between the facts of two environments."""
    machine: list[str] = []
    code: list[str] = []
    for name in dict.fromkeys([*base, *new]):
        texts = _changes(name, base.get(name), new.get(name), sides)
        (code if name in CODE_FACTS else machine).extend(texts)
    return machine, code


def _changes(name: str, old: Any, fresh: Any, sides: tuple[str, str]) -> list[str]:
    """What differs, part by part where both are mappings."""
    if isinstance(old, dict) and isinstance(fresh, dict):
        keys = dict.fromkeys([*old, *fresh])
        return [text for key in keys for text in _changes(f"{name} {key}", old.get(key), fresh.get(key), sides)]
    return [] if old == fresh else [f"{name}: {old!r} {sides[0]}, {fresh!r} {sides[1]}"]
