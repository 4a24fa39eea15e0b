"""Records of several runs put together: what stands in two of them is kept once, what contradicts is refused.

Runs are usually of different machines, told apart by `host`. Where two runs of one host name took the same case in
different environments, such as two boards that are both called `raspberrypi`, or one before and after an upgrade, the
later one's host gets the name of its run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from typing import Any

from speechmeter.core.errors import RunDirError, StoreError
from speechmeter.core.types import Record
from speechmeter.store.run_dir import RunDir

_Key = tuple[tuple[str, int], str]
"""(case id, round), and the host."""


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """What several runs hold together. `hosts` has the names that each run's hosts were given, in the order of runs."""

    records: tuple[Record, ...]
    environments: Mapping[str, Mapping[str, Any]]
    duplicates: int
    hosts: tuple[Mapping[str, str], ...]

    @property
    def renamed(self) -> list[tuple[str, str]]:
        """(old, new) of the hosts that had to be told apart."""
        return [(old, new) for names in self.hosts for old, new in names.items() if old != new]


def gather(runs: Sequence[RunDir]) -> Gathered:
    """The records and environments of all runs. Raises RunDirError where two records contradict each other."""
    environments = _environments(runs)
    pile = _Pile()
    hosts = [pile.add(run) for run in runs]
    return Gathered(
        records=tuple(pile.records.values()),
        environments=environments,
        duplicates=pile.duplicates,
        hosts=tuple(hosts),
    )


@dataclass(kw_only=True)
class _Pile:
    """What was gathered so far, with the run that each record came from."""

    records: dict[_Key, Record] = field(default_factory=dict)
    origins: dict[_Key, RunDir] = field(default_factory=dict)
    seen: dict[str, str] = field(default_factory=dict)
    duplicates: int = 0

    def add(self, run: RunDir) -> dict[str, str]:
        """Take the records of a run in; the names that its hosts have here."""
        contents = [(record, _content(record)) for record in run.records()]
        fresh = [(record, content) for record, content in contents if content not in self.seen]
        self.duplicates += len(contents) - len(fresh)
        known = {record.host: self.seen[content] for record, content in contents if content in self.seen}
        names = known | self._names(run, [record for record, _ in fresh], known)
        moved = after([record for record, _ in fresh], self.records.values())
        for record, (_, content) in zip(moved, fresh, strict=True):
            named = replace(record, host=names[record.host])
            key = (named.key, named.host)
            self.records[key], self.origins[key], self.seen[content] = named, run, named.host
        return names

    def _names(self, run: RunDir, fresh: Sequence[Record], known: Mapping[str, str]) -> dict[str, str]:
        """Names for the hosts of fresh records; a host that is known by its duplicates keeps the name it has here."""
        names: dict[str, str] = {}
        for host in dict.fromkeys(record.host for record in fresh):
            own, name = [record for record in fresh if record.host == host], known.get(host, host)
            taken = next((record for record in own if (record.key, name) in self.records), None)
            if taken is not None and (host in known or self._same_place(name, own)):
                raise _contradiction(taken, self.origins[taken.key, name], run)
            apart = taken is not None or (host not in known and self._elsewhere(name, own))
            names[host] = self._free(f"{host} ({run.path.resolve().name})") if apart else name
        return names

    def _same_place(self, host: str, own: Iterable[Record]) -> bool:
        """Whether no environment tells these records from those that stand here under the same host."""
        here = {record.environment for record in self.records.values() if record.host == host and record.environment}
        there = {record.environment for record in own if record.environment}
        return not here or not there or bool(here & there)

    def _elsewhere(self, host: str, own: Iterable[Record]) -> bool:
        """Whether a case that stands here under this host was taken in other environments alone: rounds of the two
        would become one figure."""
        here: dict[str, set[str]] = {}
        for record in self.records.values():
            if record.host == host and record.environment:
                here.setdefault(record.case.id, set()).add(record.environment)
        there: dict[str, set[str]] = {}
        for record in own:
            if record.environment and record.case.id in here:
                there.setdefault(record.case.id, set()).add(record.environment)
        return any(not environments & here[case_id] for case_id, environments in there.items())

    def _free(self, name: str) -> str:
        taken = {record.host for record in self.records.values()}
        return next(one for n in range(1, 10_000) if (one := name if n == 1 else f"{name} {n}") not in taken)


def after(records: Sequence[Record], earlier: Iterable[Record]) -> list[Record]:
    """The records of one run numbered after those of earlier runs, in lanes of their own: they are nobody's neighbours.

    A lane keeps its name unless an earlier run has one of the same name.
    """
    before = list(earlier)
    start = max((record.sequence + 1 for record in before), default=0)
    taken = {record.lane for record in before}
    lanes: dict[str, str] = {}
    for lane in dict.fromkeys(record.lane for record in records):
        names = chain([lane], (f"{lane} #{number}".strip() for number in count(2)))
        lanes[lane] = next(name for name in names if name not in taken)
        taken.add(lanes[lane])
    return [replace(record, sequence=start + record.sequence, lane=lanes[record.lane]) for record in records]


def _content(record: Record) -> str:
    """A hash of what was measured: everything but the order within the run and the names of host and lane."""
    data = {key: value for key, value in record.to_json().items() if key not in ("sequence", "host", "lane")}
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def _contradiction(record: Record, first: RunDir, second: RunDir) -> RunDirError:
    return RunDirError(
        f"{first.path} and {second.path} both hold round {record.round} of {record.case.label} "
        f"({record.case.id}) on {record.host or 'an unnamed host'}, with different content",
        where=str(second.path),
        fix="leave one of the two out; two runs of one machine are for `speechmeter compare`",
    )


def _environments(runs: Sequence[RunDir]) -> dict[str, Mapping[str, Any]]:
    """All environments by fingerprint; the first description of each. Raises StoreError where two have other facts."""
    found: dict[str, Mapping[str, Any]] = {}
    origin: dict[str, RunDir] = {}
    for run in runs:
        for fingerprint, data in run.environments().items():
            first = found.setdefault(fingerprint, data)
            origin.setdefault(fingerprint, run)
            if first.get("facts") != data.get("facts"):
                raise StoreError(
                    f"{run.environments_path}: environment {fingerprint} has other facts than in "
                    f"{origin[fingerprint].path}; one of the two files was changed by hand"
                )
    return found
