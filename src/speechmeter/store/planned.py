"""What a run was begun to measure, kept in `planned.json`, so that a reader can tell whether it was finished."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from speechmeter.core.types import Record

FILE = "planned.json"
_MOST_BYTES = 64 * 2**20


@dataclass(frozen=True, kw_only=True)
class Planned:
    """The ids of the cases to measure, and how many rounds each of them gets at least."""

    cases: tuple[str, ...]
    rounds: int

    def text(self) -> str:
        """As the file holds it."""
        return json.dumps({"rounds": self.rounds, "cases": list(self.cases)}) + "\n"


def planned_of(folder: Path) -> Planned | None:
    """What a run directory says was planned; None where it says nothing that can be read, as older ones."""
    path = folder / FILE
    try:
        if path.is_symlink() or path.stat().st_size > _MOST_BYTES:
            return None
        data = json.loads(path.read_bytes())
        cases, rounds = data["cases"], data["rounds"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    if type(rounds) is not int or rounds < 1 or not isinstance(cases, list):
        return None
    if not all(isinstance(one, str) for one in cases):
        return None
    return Planned(cases=tuple(cases), rounds=rounds)


def unfinished(folder: Path, records: Sequence[Record]) -> str:
    """What is left of a run: `12 of 63 cases have no record, 3 have fewer than 5 rounds`; empty when it is complete."""
    planned = planned_of(folder)
    if planned is None:
        return ""
    found = Counter(record.case.id for record in records)
    absent = sum(case not in found for case in planned.cases)
    short = sum(0 < found[case] < planned.rounds for case in planned.cases)
    parts = []
    if absent:
        parts.append(f"{absent} of {len(planned.cases)} cases {'has' if absent == 1 else 'have'} no record")
    if short:
        whole = "" if absent else f" of {len(planned.cases)} cases"
        parts.append(f"{short}{whole} {'has' if short == 1 else 'have'} fewer than {planned.rounds} rounds")
    return ", ".join(parts)
