"""Records of several machines, told apart: the machine becomes an axis, so that no figure mixes two of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from speechmeter.core.types import Case, Record

HOST = "host"
"""The axis that cases have where a run holds records of several machines. It is added on reading, never stored."""
UNKNOWN = "unknown"
"""The machine of records that name none."""


def hosts_apart(records: Sequence[Record]) -> list[Record]:
    """The same records; where they name several hosts, each case has the axis `host` and with it an id of its own."""
    if len({record.host for record in records}) < 2:
        return list(records)
    made: dict[tuple[str, str], Case] = {}
    found = []
    for record in records:
        key = (record.case.id, record.host)
        if key not in made:
            made[key] = replace(record.case, axes={**record.case.axes, HOST: record.host or UNKNOWN})
        found.append(replace(record, case=made[key]))
    return found


def as_stored(case: Case) -> Case:
    """The case without the axis that `hosts_apart` adds: its id is the one that the run directory knows."""
    if HOST not in case.axes:
        return case
    return replace(case, axes={name: value for name, value in case.axes.items() if name != HOST})
