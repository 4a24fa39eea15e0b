"""Whether a line is a record as we write them. It may come from a stranger, and what reads it relies on this shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isnan
from typing import Any, get_args

from speechmeter.core import metrics
from speechmeter.core.quality import IMPORT, QUALITY
from speechmeter.core.types import BATCHES, SAMPLED, Status

_STATUSES = frozenset(get_args(Status))
_NUMBERS = frozenset({int, float})
_LARGEST = 1e100
"""No figure of ours comes near, and none that is computed from such ones overflows."""
_COUNTED = ("seconds", "batch", "threads", "cores", "vocabulary")
"""Axes that figures are computed with."""
_SCALARS = frozenset({int, float, str, bool, type(None)})

Kind = Callable[[Any], bool]


def _text(value: Any) -> bool:
    return type(value) is str


def _whole(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _number(value: Any) -> bool:
    return type(value) in _NUMBERS and -_LARGEST < value < _LARGEST


def _status(value: Any) -> bool:
    return type(value) is str and value in _STATUSES


def _flag(value: Any) -> bool:
    return type(value) is bool


def _texts(value: Any) -> bool:
    return type(value) is list and all(map(_text, value))


def _numbers(value: Any) -> bool:
    """Fast where all is well: rows of modules hold many of them."""
    if type(value) is not list:
        return False
    if len(value) == 1:
        return _number(value[0])
    if not _NUMBERS.issuperset(map(type, value)):
        return False
    if not value:
        return True
    return min(value) > -_LARGEST and max(value) < _LARGEST and not isnan(sum(value))


def _places(value: Any) -> bool:
    return type(value) is list and all(map(_whole, value))


def _counts(value: Any) -> bool:
    return _number(value) or _numbers(value)


def _scalar(value: Any) -> bool:
    return type(value) in _SCALARS and (type(value) not in _NUMBERS or _number(value))


def _mapping(value: Any) -> bool:
    return type(value) is dict


def _scalars(value: Any) -> bool:
    return type(value) is dict and all(map(_scalar, value.values()))


def _axes(value: Any) -> bool:
    if not _scalars(value) or not all(value.get(name) is None or _number(value[name]) for name in _COUNTED):
        return False
    return all(type(one) is not int or -(2**63) <= one < 2**63 for one in value.values())


def _apart(value: Any) -> bool:
    return type(value) is dict and all(_mapping(part) and all(map(_numbers, part.values())) for part in value.values())


_NAMES = frozenset({"in", "module"})
"""What a part of a row has beside its values: the labels that hold it, and the module of a label."""


def _by_labels(value: Any) -> bool:
    return type(value) is list and all(
        type(part) is dict
        and _texts(part.get("in"))
        and _text(part.get("module", ""))
        and all(_numbers(part[key]) for key in part.keys() - _NAMES)
        for part in value
    )


def _held(value: Any) -> bool:
    return type(value) is list and all(
        type(one) is list and len(one) == 3 and _text(one[0]) and _text(one[1]) and _number(one[2]) for one in value
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
    "repeats": ("samples", "discard"), "schedule": ("wait", "warmup", "active", "repeat"),
    "find": ("margin", "memory_gib"),
}  # fmt: skip
"""What a mode of sampling, and a trial of a search, has in its protocol."""
_RECORD: Mapping[str, Kind] = {
    "round": _whole, "sequence": _whole, "status": _status, "reason": _text, "host": _text, "lane": _text,
    "environment": _text, "started": _text, "wall_s": _number, "stop_reason": _text, "warnings": _texts,
    "pilot": _pilot,
}  # fmt: skip
_MEASUREMENT: Mapping[str, Kind] = {
    "metric": _text, "unit": _text, "scope": _text, "values": _numbers, "source": _text, "notes": _mapping,
    "unavailable": _maybe(_text),
}  # fmt: skip
_NOTES: Mapping[str, Kind] = {
    BATCHES: _whole, "notes": _texts, "utterances": _texts, "clocked": _flag, "calls": _counts, "class": _text,
    "low": _maybe(_number), "high": _maybe(_number), "inside": _apart, "unknown": _mapping,
    "no arithmetic by torch in": _texts, "attention": _texts, "left_out": _number, "shorter_than_us": _number,
    "operators": _held, "forward": _numbers, "backward": _numbers, "recompute": _numbers, "phases": _texts,
    "file": _text, "recorded": _texts, SAMPLED: _places, "labels": _by_labels, "shortened": _text,
}  # fmt: skip
"""Notes that tables are made from; any other may hold anything."""
_ONE_EACH = ("forward", "backward", "recompute", "phases", "utterances", SAMPLED)
"""Notes with an entry for each value."""


def check_record(data: Mapping[str, Any]) -> None:
    """Raise ValueError, naming the place, where a line of the current schema is not what a record holds."""
    case = data["case"]
    _check(data, _RECORD)
    _check(case, _CASE, "case.")
    for part in ("subject", "workload"):
        _check(case[part], _SPEC, f"case.{part}.")
    _check_protocol(case["protocol"])
    for place, measurement in enumerate(data.get("measurements", ())):
        try:
            _check_measurement(measurement)
        except ValueError as error:
            raise ValueError(f"measurements.{place}: {error}") from error


def _check_protocol(protocol: Mapping[str, Any]) -> None:
    _check(protocol, _PROTOCOL, "case.protocol.")
    needed = (*_NEEDED.get(protocol.get("mode", ""), ()), *(_NEEDED["find"] if "find" in protocol else ()))
    missing = next((key for key in needed if key not in protocol), None)
    if missing is not None:
        raise ValueError(f"case.protocol.{missing} is missing")


def check_environment(data: Any) -> None:
    """Raise ValueError where a line is not what an environment holds."""
    _check(data, {"fingerprint": _text, "facts": _mapping, "state": _mapping})
    if "fingerprint" not in data:
        raise ValueError("it has no fingerprint")


def _check(data: Any, kinds: Mapping[str, Kind], where: str = "") -> None:
    """Goes through the keys that are there, which are fewer than those that may be: half of a run's reading is this."""
    if type(data) is not dict:
        raise ValueError(f"{where.rstrip('.') or 'it'} is no mapping")
    for key, value in data.items():
        kind = kinds.get(key)
        if kind is not None and not kind(value):
            raise ValueError(f"{where}{key} is {_short(value)}")


def _check_measurement(data: Any) -> None:
    _check(data, _MEASUREMENT)
    if not data["values"] and not data.get("unavailable"):
        raise ValueError("values is empty, and nothing says why")
    if not data["metric"] or not data.get("scope", "total"):
        raise ValueError("metric or scope is empty")
    known = metrics.find(data["metric"])
    if known is not None and data.get("unit", known.unit) != known.unit:
        raise ValueError(f"unit is {_short(data['unit'])}, that of {known.id} is {known.unit!r}")
    if known is not None and known.unit == "s" and data["values"] and min(data["values"]) < 0:
        raise ValueError(f"values of {known.id} are below 0")
    notes = data.get("notes")
    if not notes or known is None:  # of a meter that is not ours: nothing here reads them
        return
    _check(notes, _NOTES, "notes.")
    if data["metric"] == metrics.TIME_MODULE.id:
        _check(notes, {"calls": _number}, "notes.")
    count = len(data["values"])
    if count and not 1 <= notes.get(BATCHES, 1) <= count:
        raise ValueError(f"notes.{BATCHES} is {notes[BATCHES]}, of {count} values")
    if SAMPLED in notes and set(notes[SAMPLED]) != set(range(notes.get(BATCHES, 1))):
        raise ValueError(f"notes.{SAMPLED} does not name each of {notes.get(BATCHES, 1)} batches")
    if count and any(key in notes and len(notes[key]) != count for key in _ONE_EACH):
        raise ValueError(f"notes has other lists than for {count} values")
    held = ({key: one[key] for key in one.keys() - _NAMES} for one in notes.get("labels", ()))
    if any(len(own) != count for part in (*notes.get("inside", {}).values(), *held) for own in part.values()):
        raise ValueError(f"notes.inside or notes.labels has other lists than for {count} values")


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of more digits than Python prints
        text = type(value).__name__
    return text if len(text) <= 60 else f"{text[:60]}…"
