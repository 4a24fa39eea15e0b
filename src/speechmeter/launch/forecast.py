"""How long a run will take: from earlier records of the same cases where there are any, else a stated range."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from speechmeter.core.errors import StoreError
from speechmeter.core.types import Case, Limits
from speechmeter.engine.phases import processes_of
from speechmeter.launch.places import meters_of
from speechmeter.store.run_dir import RunDir, is_run

_START_S = 2.5
"""What a process costs at least: interpreter, torch, plug-in (2 to 8 s were seen)."""


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """Seconds at least and at most (None: no limit), and how many (case, round) pairs are known from earlier runs."""

    least_s: float
    most_s: float | None
    known: int
    total: int


def forecast(pairs: Sequence[tuple[Case, int]], limits: Limits, earlier: dict[str, float]) -> Forecast:
    """The time of the given (case, round) pairs."""
    least, most = 0.0, 0.0
    known = 0
    for case, _ in pairs:
        if case.id in earlier:
            least += earlier[case.id]
            most += earlier[case.id]
            known += 1
        else:
            least += _START_S * len(processes_of(case, meters_of(case)))
            most += limits.time_s or float("inf")
    return Forecast(least_s=least, most_s=None if most == float("inf") else most, known=known, total=len(pairs))


def earlier_walls(folders: Iterable[Path]) -> dict[str, float]:
    """Median wall seconds by case id, from every readable run in the given folders."""
    walls: dict[str, list[float]] = {}
    for folder in folders:
        for run in sorted(folder.iterdir()) if folder.is_dir() else ():
            for case_id, wall_s in _walls(run):
                walls.setdefault(case_id, []).append(wall_s)
    return {case_id: median(values) for case_id, values in walls.items()}


def _walls(run: Path) -> list[tuple[str, float]]:
    if not is_run(run):
        return []
    try:
        return [(r.case.id, r.wall_s) for r in RunDir(run).records() if r.wall_s]
    except (StoreError, OSError):
        return []
