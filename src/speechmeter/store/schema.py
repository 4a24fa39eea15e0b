"""Lines of `records.jsonl` and `environments.jsonl`: upgraded where they are old, checked, and made into records.

A line may come from a stranger, and the code that reads records relies on the shape that is checked here.

An upgrade takes a line's data at one schema and returns it at the next. History of the schema: 1, first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from math import isnan
from typing import Any, cast, get_args

from speechmeter.core import metrics
from speechmeter.core.errors import StoreError
from speechmeter.core.metrics import Note
from speechmeter.core.quality import IMPORT, QUALITY
from speechmeter.core.types import BATCHES, SAMPLED, SCHEMA, Record, Status

Upgrade = Callable[[dict[str, Any]], dict[str, Any]]

UPGRADES: dict[int, Upgrade] = {}
"""From a schema number to the function that lifts a line to the next one."""


class NewerSchemaError(StoreError):
    """A line is whole, and was written by a newer Speechmeter whose schema is not known here."""


def record_from_line(data: Any, *, upgrades: dict[int, Upgrade] = UPGRADES, newest: int = SCHEMA) -> Record:
    """A record from one line's data, upgraded as needed. Raises StoreError when it is not a record of ours."""
    if not isinstance(data, dict) or type(data.get("schema")) is not int:
        raise StoreError("not a record: there is no schema number")
    while data["schema"] < newest:
        lift = upgrades.get(data["schema"])
        if lift is None:
            raise StoreError(f"this version cannot read schema {data['schema']}")
        data = {**lift(data), "schema": data["schema"] + 1}
    if data["schema"] > newest:
        raise NewerSchemaError(
            f"schema {data['schema']} was written by a newer Speechmeter; this one reads schemas up to {newest}: "
            "update Speechmeter"
        )
    try:
        check_record(data)
        return Record.from_json(data)
    except KeyError as error:
        raise StoreError(f"incomplete record: {error} is missing") from error
    except (TypeError, AttributeError, ValueError) as error:
        raise StoreError(f"not a valid record: {error}") from error


def environment_from_line(data: Any) -> Mapping[str, Any]:
    """An environment's data from one line. Raises StoreError when it is not an environment of ours."""
    try:
        _check(data, {"fingerprint": _text, "facts": _mapping, "state": _mapping})
        if "fingerprint" not in data:
            raise ValueError("the fingerprint is missing")
    except ValueError as error:
        raise StoreError(f"not a valid environment: {error}") from error
    return cast("Mapping[str, Any]", data)


_STATUSES = frozenset(get_args(Status))
_NUMBERS = frozenset({int, float})
_LARGEST = 1e100  # no figure of ours comes near, and no figure that is computed from such ones overflows
_COUNTED = ("seconds", "batch", "threads", "cores", "vocabulary", "chunk", "streams", "rate", "text_pace")
"""Axes that figures are computed with."""
_SCALARS = frozenset({int, float, str, bool, type(None)})

Kind = Callable[[Any], bool]


def _text(value: Any) -> bool:
    return type(value) is str


def _whole(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _number(value: Any) -> bool:
    return type(value) in _NUMBERS and -_LARGEST < value < _LARGEST


def _texts(value: Any) -> bool:
    return type(value) is list and all(map(_text, value))


def _numbers(value: Any) -> bool:
    # fast for lists that are sound: rows of modules hold many of them
    if type(value) is not list:
        return False
    if len(value) == 1:
        return _number(value[0])
    if not _NUMBERS.issuperset(map(type, value)):
        return False
    if not value:
        return True
    return min(value) > -_LARGEST and max(value) < _LARGEST and not isnan(sum(value))


def _wholes(value: Any) -> bool:
    return type(value) is list and all(map(_whole, value))


def _mapping(value: Any) -> bool:
    return type(value) is dict


def _axes(value: Any) -> bool:
    if type(value) is not dict or not _SCALARS.issuperset(map(type, value.values())):
        return False
    if not all(value.get(name) is None or _number(value[name]) for name in _COUNTED):
        return False
    return all(
        (type(one) is not float or _number(one)) and (type(one) is not int or -(2**63) <= one < 2**63)
        for one in value.values()
    )


def _parts(value: Any) -> bool:
    return type(value) is dict and all(_mapping(part) and all(map(_numbers, part.values())) for part in value.values())


_NAMES = frozenset({"in", "module"})
"""What a part of a row has besides its values: the labels that hold it, and the module of a label."""


def _labels(value: Any) -> bool:
    return type(value) is list and all(
        type(part) is dict
        and _texts(part.get("in"))
        and _text(part.get("module", ""))
        and all(_numbers(part[key]) for key in part.keys() - _NAMES)
        for part in value
    )


def _rows(value: Any) -> bool:
    return type(value) is list and all(
        type(one) is list and len(one) == 3 and _text(one[0]) and _text(one[1]) and _number(one[2]) for one in value
    )


def _stated(value: Any) -> bool:
    return type(value) is dict and all(
        type(one) is list and len(one) == 3 and _number(one[0]) and all(end is None or _number(end) for end in one[1:])
        for one in value.values()
    )


def _maybe(kind: Kind) -> Kind:
    return lambda value: value is None or kind(value)


def _pilot(value: Any) -> bool:
    if type(value) is not dict or set(value) != {"rounds", "sd", "degrees"}:
        return False
    return _whole(value["rounds"]) and all(_number(value[key]) for key in ("sd", "degrees")) and value["degrees"] > 0


def _quality(value: Any) -> bool:
    asked = value if type(value) is dict else {}
    return _text(asked.get(IMPORT)) or (_text(asked.get("normaliser")) and _texts(asked.get("scores")))


_CASE: Mapping[str, Kind] = {
    "subject": _mapping, "workload": _mapping, "axes": _axes, "meters": _texts, "protocol": _mapping
}  # fmt: skip
_SPEC: Mapping[str, Kind] = {"plugin": _text, "name": _text, "source": _text, "options": _mapping}
_PROTOCOL: Mapping[str, Kind] = {
    "mode": _text, "find": _text, "margin": _number, "memory_gib": _maybe(_number), QUALITY: _quality,
    **dict.fromkeys(("seed", "samples", "min_samples", "warmup", "discard", "budget_s"), _number),
    **dict.fromkeys(("wait", "active", "repeat"), _number),
}  # fmt: skip
_NEEDED = {
    "repeats": ("samples", "discard"),
    "schedule": ("wait", "warmup", "active", "repeat"),
    "find": ("margin", "memory_gib"),
}
"""What the protocol of a mode of sampling, or of a trial of a search, must have."""
_RECORD: Mapping[str, Kind] = {
    "round": _whole, "sequence": _whole, "status": lambda value: type(value) is str and value in _STATUSES,
    "reason": _text, "host": _text, "lane": _text, "environment": _text, "started": _text, "wall_s": _number,
    "stop_reason": _text, "warnings": _texts, "pilot": _pilot,
}  # fmt: skip
_MEASUREMENT: Mapping[str, Kind] = {
    "metric": _text, "unit": _text, "scope": _text, "values": _numbers, "source": _text, "notes": _mapping,
    "unavailable": _maybe(_text),
}  # fmt: skip
_NOTES: Mapping[Note, Kind] = {
    Note.TEXT: _text, Note.TEXTS: _texts, Note.TEXT_EACH: _texts, Note.FLAG: lambda value: type(value) is bool,
    Note.WHOLE: _whole, Note.WHOLE_EACH: _wholes, Note.NUMBER: _number, Note.NUMBER_OR_NONE: _maybe(_number),
    Note.NUMBERS: lambda value: _number(value) or _numbers(value), Note.NUMBER_EACH: _numbers,
    Note.MAPPING: _mapping, Note.ROWS: _rows, Note.STATED: _stated, Note.PARTS_EACH: _parts, Note.LABELS_EACH: _labels,
}  # fmt: skip
_EACH: Mapping[Note, Callable[[Any], Iterator[list[Any]]]] = {
    **dict.fromkeys((Note.TEXT_EACH, Note.WHOLE_EACH, Note.NUMBER_EACH), lambda value: iter([value])),
    Note.PARTS_EACH: lambda value: (own for part in value.values() for own in part.values()),
    Note.LABELS_EACH: lambda value: (row[key] for row in value for key in row.keys() - _NAMES),
}
"""The lists of a note that must have one entry for each value."""


@cache
def _notes_of(metric_id: str) -> dict[str, tuple[Kind, Callable[[Any], Iterator[list[Any]]] | None, str]]:
    """By the name of a note: its check, its lists with an entry for each value, and its kind in words."""
    metric = metrics.find(metric_id)
    declared = {**metrics.COMMON_NOTES, **(metric.notes if metric is not None else {})}
    return {name: (_NOTES[kind], _EACH.get(kind), kind.value) for name, kind in declared.items()}


def check_record(data: Mapping[str, Any]) -> None:
    """Raise ValueError, naming the field, where a line of the current schema does not hold a record."""
    case = data["case"]
    _check(data, _RECORD)
    _check(case, _CASE, "case.")
    for part in ("subject", "workload"):
        _check(case[part], _SPEC, f"case.{part}.")
    protocol = case["protocol"]
    _check(protocol, _PROTOCOL, "case.protocol.")
    needed = (*_NEEDED.get(protocol.get("mode", ""), ()), *(_NEEDED["find"] if "find" in protocol else ()))
    if missing := [key for key in needed if key not in protocol]:
        raise ValueError(f"case.protocol.{missing[0]} is missing")
    for index, measurement in enumerate(data.get("measurements", ())):
        try:
            _check_measurement(measurement)
        except ValueError as error:
            raise ValueError(f"measurements.{index}: {error}") from error


def _check(data: Any, kinds: Mapping[str, Kind], where: str = "") -> None:
    # goes through the keys that are there, which are fewer than those that may be: half of a run's reading is this
    if type(data) is not dict:
        raise ValueError(f"{where.rstrip('.') or 'the line'} is not a mapping")
    for key, value in data.items():
        kind = kinds.get(key)
        if kind is not None and not kind(value):
            raise ValueError(f"{where}{key} is {_short(value)}")


def _check_measurement(data: Any) -> None:
    if not _is_usual(data):
        _check(data, _MEASUREMENT)
    if not data["values"] and not data.get("unavailable"):
        raise ValueError("values is empty, and unavailable gives no reason")
    if not data["metric"] or not data.get("scope", "total"):
        raise ValueError("a measurement has an empty metric or an empty scope")
    known = metrics.find(data["metric"])
    if known is not None and data.get("unit", known.unit) != known.unit:
        raise ValueError(f"unit is {_short(data['unit'])}, but {known.id} is in {known.unit!r}")
    if known is not None and known.unit == "s" and not known.signed and data["values"] and min(data["values"]) < 0:
        raise ValueError(f"values of {known.id} are below 0")
    notes = data.get("notes")
    if not notes or known is None:  # nothing of ours reads the notes of a plug-in's meter
        return
    declared, count = _notes_of(known.id), len(data["values"])
    for key in [key for key in notes if key in declared]:
        kind, lists, words = declared[key]
        if not kind(notes[key]):
            raise ValueError(f"notes.{key} is {_short(notes[key])}, expected: {words}")
        if count and lists is not None and any(len(own) != count for own in lists(notes[key])):
            raise ValueError(f"notes.{key} does not have {count} entries in each list, one for each value")
    if count and not 1 <= notes.get(BATCHES, 1) <= count:
        raise ValueError(f"notes.{BATCHES} is {notes[BATCHES]}, but there are {count} values")
    if SAMPLED in notes and set(notes[SAMPLED]) != set(range(notes.get(BATCHES, 1))):
        raise ValueError(f"notes.{SAMPLED} does not name each of {notes.get(BATCHES, 1)} batches")


def _is_usual(data: Any) -> bool:
    """Whether a measurement has what nearly every one has, of the right kinds: half as long as looking at each key."""
    return (
        type(data) is dict
        and type(data.get("metric")) is str
        and type(data.get("unit")) is str
        and type(data.get("scope")) is str
        and type(data.get("source", "")) is str
        and type(data.get("notes", _NO_NOTES)) is dict
        and "unavailable" not in data
        and _numbers(data.get("values"))
    )


_NO_NOTES: Mapping[str, Any] = {}


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of more digits than Python prints
        text = type(value).__name__
    return text if len(text) <= 60 else f"{text[:60]}…"
