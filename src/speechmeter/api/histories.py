"""The history of a project: all runs below a folder, a series for each case, metric and machine."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speechmeter.analysis.compare import Lasting
from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.history import Failure, Point, Series, history_exit, machine_of, series_of
from speechmeter.analysis.metric_names import metric_named
from speechmeter.analysis.selecting import fits, nothing_fits, parse
from speechmeter.core.errors import InputError, SpeechmeterError
from speechmeter.core.types import FAILED, Case, Record
from speechmeter.report.numbers import counted
from speechmeter.store.run_dir import RunDir, is_run

_Machine = tuple[str, ...]
_Watcher = Callable[[int, int], None]
_FEW = 3
"""The most notes that an error repeats."""


@dataclass(frozen=True, kw_only=True)
class History:
    """All series below a folder, how many runs are in them, and notes on what was left out."""

    series: tuple[Series, ...]
    runs: int
    notes: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """That of the command: 1 where the newest shift is a regression or the newest run failed."""
        return history_exit(self.series)


@dataclass(frozen=True, kw_only=True)
class _Group:
    """The rounds of one case on one machine in one run, failed ones too."""

    run: str
    machine: _Machine
    records: tuple[Record, ...]
    facts: Mapping[str, Any]

    @property
    def started(self) -> str:
        return min(record.started for record in self.records)

    @property
    def case(self) -> Case:
        return self.records[0].case

    @property
    def failure(self) -> str:
        """How its last round failed; empty where it did not."""
        last = self.records[-1]
        return f"{last.status}: {last.reason}" if last.status in FAILED else ""


def history(
    text: str, thresholds: Mapping[str, float], *, last: int | None = None, watch: _Watcher = lambda done, of: None
) -> History:
    """Levels of every case below a folder (`DIR` or `DIR@model=a,batch=1`), for each metric in `thresholds`.

    `last` takes only that many newest runs. A run that cannot be read is named in the notes and left out; failed ones
    are counted there. Raises InputError where the folder holds no run, no record fits, or no case has a metric that was
    asked for.
    """
    folder, filters = parse(text)
    groups, notes = _read(folder, watch)
    chosen = [group for group in groups if fits(group.records[0], filters)]
    if not chosen:
        raise nothing_fits(text, filters, [group.records[0] for group in groups])
    newest = chosen
    if last is not None:
        started: dict[str, str] = {}
        for group in chosen:
            started[group.run] = min(group.started, started.get(group.run, group.started))
        kept = set(sorted(started, key=lambda run: started[run])[-last:])
        newest = [group for group in chosen if group.run in kept]
    apart = _apart(newest)
    machines = {machine for _, machine in apart}
    hosts = Counter(machine[0] for machine in machines)
    # machines are named by their hosts; two of one name get the rest of what is known of them added
    names = {one: one[0] if hosts[one[0]] == 1 else " · ".join(filter(None, one)) for one in machines}
    if timed := next((name for name, effect in thresholds.items() if isinstance(effect, Lasting)), None):
        fix = "use a percentage such as 5%"
        raise InputError(
            f"a history compares ratios of {timed}, so the minimum effect must be a percentage, not a time",
            key="min_effect",
            fix=fix,
        )
    series = [
        one
        for name, min_effect in thresholds.items()
        for (_, machine), together in apart.items()
        for one in _series(together, name, names[machine], min_effect, notes)
    ]
    notes = list(dict.fromkeys(notes))
    if not series:
        what = "; ".join([f"no run here has {' or '.join(thresholds)}", *notes[:_FEW]])
        raise InputError(what, where=text, fix="choose another `metric`")
    return History(series=tuple(series), runs=len({group.run for group in newest}), notes=tuple(notes))


def find_runs(folder: Path) -> list[Path]:
    """Run directories below a folder, by name. Hidden folders and the inside of runs are not searched."""
    fix = "give the folder that contains the run directories"
    if not folder.is_dir():
        raise InputError("there is no such directory", where=str(folder), fix=fix)
    if is_run(folder):
        raise InputError("this is a single run, and a history needs several", where=str(folder), fix=fix)
    found = []
    for parent, below, _ in os.walk(folder):
        below[:] = sorted(name for name in below if not name.startswith("."))
        runs = [name for name in below if is_run(Path(parent) / name)]
        below[:] = [name for name in below if name not in runs]
        found += [Path(parent) / name for name in runs]
    if not found:
        raise InputError("there is no run in this folder", where=str(folder), fix=fix)
    return sorted(found)


def _read(folder: Path, watch: _Watcher) -> tuple[list[_Group], list[str]]:
    """What all runs hold; a record that is in two of them (a copy, a merged run) counts once."""
    groups: list[_Group] = []
    notes: list[str] = []
    seen: set[tuple[Any, ...]] = set()
    paths = find_runs(folder)
    for number, path in enumerate(paths):
        watch(number, len(paths))
        try:
            run = RunDir(path)
            groups += _groups(run, str(path.relative_to(folder)), seen)
            notes += run.notes
        except (SpeechmeterError, OSError) as error:
            notes.append(f"left out: {error}")
    return groups, notes


def _groups(run: RunDir, name: str, seen: set[tuple[Any, ...]]) -> Iterator[_Group]:
    environments = run.environments()
    found: dict[tuple[str, _Machine], tuple[Mapping[str, Any], list[Record]]] = {}
    for record in run.records():
        mark = (record.case.id, record.round, record.host, record.environment, record.started)
        if record.status not in {"ok", *FAILED} or mark in seen:
            continue
        seen.add(mark)
        facts = environments.get(record.environment, {}).get("facts", {})
        key = (record.case.id, machine_of(facts, record.host))
        found.setdefault(key, (facts, []))[1].append(record)
    for (_, machine), (facts, records) in found.items():
        yield _Group(run=name, machine=machine, records=tuple(records), facts=facts)


def _apart(groups: Sequence[_Group]) -> dict[tuple[str, _Machine], list[_Group]]:
    """Groups of one case and machine; which meters ran beside it does not make it another case.

    A process that was killed could not report its machine: its group goes to the newest known one of that host.
    """
    ordered = sorted(groups, key=lambda group: group.started)
    homes = {(_key(group.case), group.records[0].host): group.machine for group in ordered if group.facts}
    found: dict[tuple[str, _Machine], list[_Group]] = {}
    for group in groups:
        key = _key(group.case)
        lost = group.failure and not group.facts
        machine = homes.get((key, group.records[0].host), group.machine) if lost else group.machine
        found.setdefault((key, machine), []).append(group)
    return found


def _key(case: Case) -> str:
    return json.dumps({**case.to_json(), "meters": []}, sort_keys=True)


def _series(groups: Sequence[_Group], name: str, machine: str, min_effect: float, notes: list[str]) -> Iterator[Series]:
    case = groups[-1].case
    metric = metric_named(name, groups[-1].records, key="metric")
    points = []
    for group in groups:
        figure = estimate(group.records, metric)
        if figure is not None and figure.value > 0:
            points.append(Point(run=group.run, started=group.started, figure=figure, facts=group.facts))
        elif figure is not None:
            notes.append(f"left out: {group.run}: {metric.name} is not above 0 for {group.case.label}")
    measured = {point.run for point in points}
    failed = [group for group in groups if group.failure and group.run not in measured]
    if failed:
        count, latest = len({group.run for group in failed}), max(failed, key=lambda group: group.started)
        runs = counted(len({group.run for group in groups}), "run")
        notes.append(f"failed: {count} of {runs} of {latest.case.label}, last {latest.run}: {latest.failure}")
    if points:
        failures = [Failure(run=one.run, started=one.started, facts=one.facts, reason=one.failure) for one in failed]
        yield series_of(case, metric, machine, points, min_effect, failures)
