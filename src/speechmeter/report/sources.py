"""Where the records of a report come from: each run by machine, so that no figure mixes two of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from speechmeter.analysis.selecting import by_case, parse, select
from speechmeter.core.errors import InputError
from speechmeter.core.finding import COARSE_ROUNDS, TARGETS
from speechmeter.core.hosts import at_home
from speechmeter.core.printable import one_line
from speechmeter.core.slo import Slo, slo_of
from speechmeter.core.tuning import Tuning, tuning_of
from speechmeter.core.types import Record
from speechmeter.report.labels import case_labels
from speechmeter.store.run_dir import RunDir, unfinished

Environments = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Source:
    """Records of one run from one machine: within them a case's id names one group of rounds.

    `unfinished` says what the run still lacks, and is empty for a finished one.
    """

    name: str
    host: str
    records: tuple[Record, ...]
    environments: Environments
    artifacts: Path | None = None
    notes: tuple[str, ...] = ()
    slo: Slo | None = None
    tuning: Tuning | None = None
    unfinished: str = ""

    @cached_property
    def cases(self) -> dict[str, list[Record]]:
        """The rounds of each case by its id."""
        return by_case(self.records)

    @cached_property
    def labels(self) -> dict[str, str]:
        """A name for each case, by its id, that no other of this source has."""
        return case_labels(self.records)

    def facts(self, record: Record) -> Mapping[str, Any]:
        """What is known of the machine a record was taken on; empty where nothing is."""
        facts: Mapping[str, Any] = self.environments.get(record.environment, {}).get("facts", {})
        return facts

    def device(self, record: Record) -> str:
        """The name of what computed: the GPU's, else the processor's, else the host's."""
        kind = "gpu" if record.case.device.is_cuda else "cpu"
        return str(self.facts(record).get(kind) or self._known(kind) or record.host or self.name)

    def _known(self, kind: str) -> str:
        """The one GPU or processor of the measured records, for those that were not measured; empty for several."""
        found = {str(facts.get(kind) or "") for record in self.records if (facts := self.facts(record))}
        return found.pop() if len(found) == 1 else ""


def read_sources(selections: Iterable[str]) -> list[Source]:
    """The runs, or parts of them (`RUN@model=a`), in order, each machine of a run apart.

    Raises RunDirError for what is no run, InputError for a part that holds nothing.
    """
    # runs of one name get a number behind it
    sources = [source for text in selections for source in _read(text)]
    names = [source.name for source in sources]
    return [
        replace(source, name=f"{source.name} ({names[: index + 1].count(source.name)})")
        if names.count(source.name) > 1
        else source
        for index, source in enumerate(sources)
    ]


def _read(text: str) -> list[Source]:
    path, filters = parse(text)
    run = RunDir.existing(path)
    stored = run.records()
    records, environments, left = at_home(stored), run.environments(), unfinished(path, stored)
    chosen = select(records, filters, text) if filters else records
    hosts: dict[str, list[Record]] = {}
    for record in chosen:
        hosts.setdefault(record.host, []).append(record)
    name = one_line(path.resolve().name)
    return [
        Source(
            name=f"{name} · {host}" if len(hosts) > 1 else name,
            host=host,
            records=tuple(those),
            environments=environments,
            artifacts=run.artifacts_path,
            notes=run.notes,
            slo=asked_slo(run),
            tuning=None if filters else asked_tuning(run),
            unfinished=left,
        )
        for host, those in (hosts or {"": []}).items()
    ]


def asked_slo(run: RunDir) -> Slo | None:
    """The SLO of the plan that a run keeps; None where it has none, or keeps no plan."""
    plan = _kept_plan(run)
    given, find = plan.get("slo"), plan.get("find")
    try:
        return slo_of(given, first_round=COARSE_ROUNDS if find in TARGETS else 0) if given else None
    except (ValueError, TypeError, InputError):
        return None


def asked_tuning(run: RunDir) -> Tuning | None:
    """What the plan that a run keeps is tuned for; None where it is not, or where no plan is kept."""
    try:
        return tuning_of(_kept_plan(run))
    except (ValueError, TypeError, InputError):
        return None


def _kept_plan(run: RunDir) -> Mapping[str, Any]:
    """The plan that a run keeps, as plain data; empty where there is none that can be read."""
    if not run.plan_path.is_file():
        return {}
    import yaml

    try:
        plan = yaml.safe_load(run.plan_path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, OSError, ValueError):
        return {}
    return plan if isinstance(plan, Mapping) else {}


def by_machine(sources: Sequence[Source]) -> dict[str, list[list[Record]]]:
    """The cases of all sources by what computed them; hosts and runs are named where devices are called alike."""
    groups_of: dict[tuple[str, str, str], list[list[Record]]] = {}
    for source in sources:
        for group in source.cases.values():
            if group[0].status != "skipped":
                groups_of.setdefault((source.device(group[0]), source.host, source.name), []).append(group)
    devices = [device for device, _, _ in groups_of]
    hosts = [(device, host) for device, host, _ in groups_of]
    named: dict[str, list[list[Record]]] = {}
    for (device, host, run), groups in groups_of.items():
        parts = [device, *([host] if devices.count(device) > 1 and hosts.count((device, host)) == 1 else [])]
        parts += [run] if hosts.count((device, host)) > 1 else []
        named[" · ".join(parts)] = groups
    return named
