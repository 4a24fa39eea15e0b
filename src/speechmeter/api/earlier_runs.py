"""How much runs of one case differ from each other without any change, estimated from earlier runs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from speechmeter.analysis.compare import Between, between_runs
from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.selecting import by_case
from speechmeter.core.errors import SkippedLinesWarning, SpeechmeterError
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Case, Record
from speechmeter.report.numbers import counted
from speechmeter.store.run_dir import newest_runs


class EarlierRuns:
    """The other runs in the folder of two that are compared; none if these are in two folders. Read lazily."""

    def __init__(self, base: Path, new: Path) -> None:
        same = base.resolve().parent == new.resolve().parent
        self._folder = base.resolve().parent if same else None
        self._cases: dict[str, list[list[Record]]] | None = None
        self._used = 0

    @property
    def words(self) -> str:
        """From how many runs a spread was taken; empty where none was."""
        return f"{counted(self._used, 'run')} in {self._folder}" if self._used and self._folder is not None else ""

    def spread(self, base: Sequence[Record], metric: Metric, scope: str) -> Between:
        """The variance of what two runs of this case differ by, beyond what their rounds show; None if unknown."""
        same = [group for group in self._read().get(_key(base[0].case), []) if group[0].host == base[0].host]
        figures = [figure for group in same if (figure := estimate(group, metric, scope)) and figure.value > 0]
        found = between_runs(figures)
        if found.spread is not None:
            self._used = max(self._used, len(figures))
        return found

    def _read(self) -> dict[str, list[list[Record]]]:
        """The rounds of every case in every run, the oldest run first; copies in merged runs count once."""
        if self._cases is None:
            self._cases = {}
            seen: set[object] = set()
            for run in newest_runs(self._folder) if self._folder is not None else ():
                try:
                    with warnings.catch_warnings():  # nobody asked about damaged lines of other runs
                        warnings.simplefilter("ignore", SkippedLinesWarning)
                        groups = by_case(run.records())
                except (SpeechmeterError, OSError):
                    continue
                for group in groups.values():
                    contents = {  # what a copy of a record has in common with it
                        (one.case.id, one.round, one.started, one.wall_s, tuple(m.values for m in one.measurements))
                        for one in group
                    }
                    if contents <= seen:
                        continue
                    seen |= contents
                    self._cases.setdefault(_key(group[0].case), []).append(group)
            for groups_ in self._cases.values():
                groups_.sort(key=lambda group: group[0].started)
        return self._cases


def _key(case: Case) -> str:
    """The id of the case whatever order its meters are named in: they are measured in the same order."""
    return replace(case, meters=tuple(sorted(case.meters))).id
