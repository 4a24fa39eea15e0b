"""Select records by model, axes and host, and group them by case: everything that chooses records does it here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from speechmeter.core.axes import LATE_DEFAULTS
from speechmeter.core.errors import InputError
from speechmeter.core.hosts import HOST, UNKNOWN
from speechmeter.core.plugins import nearest
from speechmeter.core.types import Record

MODEL = "model"


Filters = Mapping[str, Any]
"""Values of axes, of `model` and of `host`: as text where a user typed them, or as they are."""


def by_case(records: Iterable[Record]) -> dict[str, list[Record]]:
    """The records of each case by its id, in the order of their first appearance."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(record.case.id, []).append(record)
    return groups


def parse(text: str) -> tuple[Path, dict[str, str]]:
    """The directory and the filters of `RUN` or `RUN@model=a,threads=2`.

    Raises InputError for a filter without a key or a value.
    """
    if Path(text).exists() or "@" not in text:
        return Path(text), {}
    path, _, rest = text.rpartition("@")
    filters = {}
    for part in rest.split(","):
        key, equals, value = part.partition("=")
        if not equals:
            raise InputError(f"{part!r} is not key=value", where=text, fix="for example RUN@model=wav2vec2,batch=1")
        filters[key.strip()] = value.strip()
    return Path(path), filters


def select(records: Sequence[Record], filters: Filters, where: str) -> list[Record]:
    """The records whose model, axes and host are those asked for.

    Raises InputError where there are none; it names the first filter that leaves nothing, and `where` they are from.
    """
    chosen = [record for record in records if fits(record, filters)]
    if not chosen:
        raise nothing_fits(where, filters, records)
    return chosen


def fits(record: Record, filters: Filters) -> bool:
    """Whether a record's model and axes are those asked for."""
    labels = _labels(record)
    return all(key in labels and _same(labels[key], value) for key, value in filters.items())


def nothing_fits(text: str, filters: Filters, records: Sequence[Record]) -> InputError:
    """What to raise where a selection is empty: the first filter that leaves nothing, and what there is instead."""
    if not records:
        return InputError("there are no records", where=text, fix="choose a run that was measured")
    keys = {key for record in records for key in _labels(record)}
    for key in filters:
        if key not in keys:
            return InputError(f"the records have no key {key!r}", where=text, fix=nearest(key, sorted(keys)))
    beginnings = (list(filters.items())[:count] for count in range(1, len(filters) + 1))
    *before, (key, value) = next(some for some in beginnings if not any(fits(record, dict(some)) for record in records))
    among = " and ".join(f"{key} {value}" for key, value in before)
    left = [record for record in records if fits(record, dict(before))]
    # what there is instead, numbers before words
    found = [labels[key] for record in left if key in (labels := _labels(record))]
    found.sort(key=lambda one: (False, one, str(one)) if isinstance(one, int | float) else (True, 0, str(one)))
    shown = list(dict.fromkeys(str(one).removesuffix(".0") if isinstance(one, float) else str(one) for one in found))
    fix = f"the run has only {', '.join(shown)}"
    return InputError(
        f"no record{f' of {among}' if among else ''} has {key} {value}",
        where=text,
        fix=fix if shown else f"remove {key} from the selection: these records do not have it",
    )


def _labels(record: Record) -> dict[str, Any]:
    return {MODEL: record.case.subject.name, HOST: record.host or UNKNOWN, **LATE_DEFAULTS, **record.case.axes}


def _same(actual: Any, wanted: Any) -> bool:
    if not isinstance(wanted, str):
        return bool(actual == wanted)
    import yaml

    try:
        return str(actual) == wanted or bool(actual == yaml.safe_load(wanted))
    except yaml.YAMLError:
        return False
