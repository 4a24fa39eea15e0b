"""Runs of several machines as one run directory: what several runs hold is kept once, what contradicts is refused.

Machines are distinguished by `host`. Where two runs of one host name measured the same case in different environments,
such as two boards that are both called `raspberrypi`, or one before and after an upgrade, the later one's host gets the
name of its run.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from pathlib import Path
from typing import Any

from speechmeter.core.errors import RunDirError, StoreError
from speechmeter.core.files import MIB, draft_folder, read_bytes
from speechmeter.core.types import Record
from speechmeter.store.artifacts import artifacts_of, copy_artifacts, own_name
from speechmeter.store.lines import write_lines
from speechmeter.store.run_dir import RunDir, is_free

_PLANS = "plans"
_LARGEST_PLAN = MIB
_Key = tuple[tuple[str, int], str]
"""(case id, round), and the host."""


@dataclass(kw_only=True)
class Gathered:
    """What several runs hold together.

    `hosts` has the names that each run's hosts were given, in the order of runs; `origins` the run of each record.
    """

    environments: Mapping[str, Mapping[str, Any]]
    by_key: dict[_Key, Record] = field(default_factory=dict)
    origins: dict[_Key, RunDir] = field(default_factory=dict)
    hosts: list[Mapping[str, str]] = field(default_factory=list)
    duplicates: int = 0
    _host_of: dict[str, str] = field(default_factory=dict)  # by a hash of the record's content

    @property
    def records(self) -> tuple[Record, ...]:
        """The records of all runs, in order."""
        return tuple(self.by_key.values())

    @property
    def renamed(self) -> list[tuple[str, str]]:
        """(old, new) of the hosts that got another name."""
        return [(old, new) for names in self.hosts for old, new in names.items() if old != new]

    def add(self, run: RunDir) -> None:
        """Take in the records of a run. Raises RunDirError where one contradicts a record that is here."""
        contents = [(record, _content(record)) for record in run.records()]
        fresh = [(record, content) for record, content in contents if content not in self._host_of]
        self.duplicates += len(contents) - len(fresh)
        known = {record.host: self._host_of[content] for record, content in contents if content in self._host_of}
        names = known | self._names(run, [record for record, _ in fresh], known)
        moved = after([record for record, _ in fresh], self.by_key.values())
        for record, (_, content) in zip(moved, fresh, strict=True):
            named = replace(record, host=names[record.host])
            key = (named.key, named.host)
            self.by_key[key], self.origins[key], self._host_of[content] = named, run, named.host
        self.hosts.append(names)

    def _names(self, run: RunDir, fresh: Sequence[Record], known: Mapping[str, str]) -> dict[str, str]:
        """Names for the hosts of fresh records; a host that is known by its duplicates keeps the name it has here."""
        names: dict[str, str] = {}
        for host in dict.fromkeys(record.host for record in fresh):
            name = known.get(host, host)
            here = [record for record in self.by_key.values() if record.host == name]
            own = [record for record in fresh if record.host == host]
            taken = next((record for record in own if (record.key, name) in self.by_key), None)
            if taken is not None and (host in known or _may_be_one_machine(here, own)):
                raise RunDirError(
                    f"{self.origins[taken.key, name].path} and {run.path} both hold round {taken.round} of "
                    f"{taken.case.label} ({taken.case.id}) on {host or 'an unnamed host'}, with different content",
                    where=str(run.path),
                    fix="leave out one of the two; to compare two runs of one machine, use `speechmeter compare`",
                )
            apart = taken is not None or (host not in known and _measured_elsewhere(here, own))
            names[host] = self._free(f"{host} ({run.path.resolve().name})") if apart else name
        return names

    def _free(self, name: str) -> str:
        taken = {record.host for record in self.by_key.values()}
        return next(one for n in count(1) if (one := name if n == 1 else f"{name} {n}") not in taken)


def _may_be_one_machine(here: Iterable[Record], own: Iterable[Record]) -> bool:
    """Whether the environments of two groups of records do not prove that they are of two machines."""
    environments = [{record.environment for record in group if record.environment} for group in (here, own)]
    return not all(environments) or not environments[0].isdisjoint(environments[1])


def _measured_elsewhere(here: Iterable[Record], own: Iterable[Record]) -> bool:
    """Whether a case of both groups was measured in different environments only: rounds of both would become one
    figure."""
    before, now = _environments_by_case(here), _environments_by_case(own)
    return any(before[case_id].isdisjoint(now[case_id]) for case_id in before.keys() & now.keys())


def _environments_by_case(records: Iterable[Record]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for record in records:
        if record.environment:
            found[record.case.id].add(record.environment)
    return found


def after(records: Sequence[Record], earlier: Iterable[Record]) -> list[Record]:
    """The records of one run numbered after those of earlier runs, in lanes of their own, so that no records of two
    runs count as neighbours. A lane keeps its name unless an earlier run has one of the same name.
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


@dataclass(frozen=True, kw_only=True)
class Merged:
    """A merged run: its path, what it holds, and the artifacts that were left out."""

    path: Path
    gathered: Gathered
    left_out: tuple[str, ...]


def merge(paths: Sequence[Path], output: Path) -> Merged:
    """Write the records, environments, plans and artifacts of all runs into `output`, which must be free.

    Raises RunDirError where it is not, where a path is not a run, or where two runs contradict each other; nothing is
    then written.
    """
    if not is_free(output):
        raise RunDirError("this exists already", where=str(output), fix="choose another `output`")
    runs = [RunDir.existing(path) for path in paths]
    gathered = Gathered(environments=_environments(runs))
    for run in runs:
        gathered.add(run)
    try:
        output.absolute().parent.mkdir(parents=True, exist_ok=True)
        with draft_folder(output.absolute().parent) as draft:
            left_out = tuple(_write(RunDir(draft), runs, gathered))
            draft.chmod(0o755)
            draft.replace(output)
    except OSError as error:
        raise RunDirError(
            f"cannot be written: {error.strerror}", where=str(output), fix="choose another `output`"
        ) from error
    return Merged(path=output, gathered=gathered, left_out=left_out)


def _environments(runs: Sequence[RunDir]) -> dict[str, Mapping[str, Any]]:
    """All environments by fingerprint; the first description of each. Raises StoreError where two have other facts."""
    found: dict[str, tuple[RunDir, Mapping[str, Any]]] = {}
    for run in runs:
        for fingerprint, data in run.environments().items():
            origin, first = found.setdefault(fingerprint, (run, data))
            if first.get("facts") != data.get("facts"):
                raise StoreError(
                    f"{run.environments_path}: the facts of environment {fingerprint} differ from {origin.path}; "
                    "one of the two files was changed by hand: restore it, or leave out one of the two runs"
                )
    return {fingerprint: data for fingerprint, (_, data) in found.items()}


def _write(target: RunDir, runs: Sequence[RunDir], gathered: Gathered) -> Iterator[str]:
    """Write the merged run; a line for each artifact that was left out."""
    write_lines(target.records_path, (record.to_json() for record in gathered.records))
    write_lines(target.environments_path, gathered.environments.values())
    target.artifacts_path.mkdir()
    for run, hosts in zip(runs, gathered.hosts, strict=True):
        names = _folder_names(run, hosts, gathered.records)
        yield from copy_artifacts(run.artifacts_path, target.artifacts_path, names, run.path.resolve().name)
    _write_plans(target, runs)


def _folder_names(run: RunDir, hosts: Mapping[str, str], merged: Iterable[Record]) -> dict[str, set[str]]:
    """From the folder of a case to its names in the merged run: one for each host whose records read it.

    Where several hosts hold a case, each has its own: one without a host's name is read for all that have none.
    """
    holders: dict[str, set[str]] = defaultdict(set)
    for record in merged:
        holders[record.case.id].add(record.host)
    names: dict[str, set[str]] = defaultdict(set)
    for record in run.records():
        case_id = record.case.id
        name = own_name(case_id, hosts[record.host]) if len(holders[case_id]) > 1 else case_id
        names[artifacts_of(run.artifacts_path, record).name].add(name)
    return names


def _write_plans(target: RunDir, runs: Sequence[RunDir]) -> None:
    """A plan that all runs share is the plan of the merged run; different ones are kept among the artifacts."""
    plans = [
        (run.path.resolve().name, read_bytes(run.plan_path, _LARGEST_PLAN)) for run in runs if run.plan_path.is_file()
    ]
    if len({text for _, text in plans}) == 1:
        target.plan_path.write_bytes(plans[0][1])
        return
    folder = target.artifacts_path / _PLANS
    for number, (name, text) in enumerate(plans):
        folder.mkdir(exist_ok=True)
        (folder / f"{number}-{name}.yaml").write_bytes(text)
