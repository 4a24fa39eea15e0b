"""The parts of runs that are compared: `RUN`, or `RUN@model=a,threads=2`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from speechmeter.analysis.selecting import by_case, parse
from speechmeter.analysis.selecting import select as select_records
from speechmeter.api.loaded import Run
from speechmeter.core.errors import InputError
from speechmeter.core.hosts import HOST, hosts_apart
from speechmeter.core.types import Record
from speechmeter.store.run_dir import RunDir, unfinished


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Some cases of a run: `RUN`, or `RUN@model=a,threads=2`."""

    path: Path
    filters: Mapping[str, str]
    groups: tuple[tuple[Record, ...], ...] = field(repr=False)
    environments: Mapping[str, Mapping[str, Any]] = field(repr=False)
    unfinished: str = ""
    notes: tuple[str, ...] = ()

    def facts_of(self, group: Sequence[Record]) -> Mapping[str, Any]:
        """What is known of the environment of some records; empty where nothing is."""
        facts: Mapping[str, Any] = self.environments.get(group[0].environment, {}).get("facts", {})
        return facts


Side = Selection | Run | str | Path
"""What may be compared."""


def select(text: str) -> Selection:
    """Read a selection. Raises InputError for a missing run, and for a filter that is malformed or fits nothing."""
    path, filters = parse(text)
    run = RunDir.existing(path)
    records = run.records()
    measured = [record for record in hosts_apart(records) if record.status != "skipped"]
    chosen = by_case(select_records(measured, filters, text))
    return Selection(
        path=path,
        filters=filters,
        groups=tuple(map(tuple, chosen.values())),
        environments=run.environments(),
        unfinished=unfinished(path, records),
        notes=run.notes,
    )


def selected(side: Side) -> Selection:
    """The selection of a run, of a path or of a text as `select` takes it."""
    if isinstance(side, Selection):
        return side
    return select(str(side.path if isinstance(side, Run) else side))


def several_hosts(what: str, side: Selection, hosts: Iterable[str]) -> InputError:
    """What to raise where one machine is needed, and a selection has several."""
    names = sorted(hosts)
    filters = ",".join(f"{key}={value}" for key, value in {**side.filters, HOST: names[0]}.items())
    return InputError(
        f"{what} {len(names)} machines: {', '.join(names)}",
        where=str(side.path),
        fix=f"choose one: {shlex.quote(f'{side.path}@{filters}')}",
    )
