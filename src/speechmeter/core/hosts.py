"""Records of several machines, kept apart: the machine becomes an axis, so that no figure mixes two of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from speechmeter.core.types import LEFT_OUT, Case, Record

HOST = "host"
"""The axis that cases have where a run holds records of several machines. It is added on reading, never stored."""
UNKNOWN = "unknown"
"""The machine of records that name none."""


def hosts_apart(records: Sequence[Record]) -> list[Record]:
    """The same records; where they are of several machines, each case has the axis `host` and with it an id of its own.

    Cases that were left out by a host that is no machine, such as the driver of a cluster, are as `at_home` gives them.
    """
    machines = _machines(records)
    if len(machines) < 2:
        return at_home(records)
    made: dict[tuple[str, str], Case] = {}
    found = []
    for record in records:
        key = (record.case.id, record.host)
        if key not in made:
            axes = {HOST: record.host or UNKNOWN} if record.host in machines else {}
            made[key] = record.case.with_axes(**axes)
        found.append(replace(record, case=made[key]))
    return found


def at_home(records: Sequence[Record]) -> list[Record]:
    """The same records; those that a host left out which is no machine are of the one machine, where there is one."""
    machines = _machines(records)
    if len(machines) != 1:
        return list(records)
    (home,) = machines
    return [record if record.host == home else replace(record, host=home) for record in records]


def _machines(records: Sequence[Record]) -> set[str]:
    """Hosts that measured, or hold a case that another one holds too, as in merged runs; all where that is none."""
    hosts = {record.host for record in records}
    if len(hosts) < 2:
        return hosts
    holders: dict[str, set[str]] = {}
    for record in records:
        holders.setdefault(record.case.id, set()).add(record.host)
    found = {record.host for record in records if record.status not in LEFT_OUT or len(holders[record.case.id]) > 1}
    return found or hosts


def as_stored(case: Case) -> Case:
    """The case without the axis that `hosts_apart` adds: its id is the one that the run directory knows."""
    return case.without_axis(HOST) if HOST in case.axes else case
