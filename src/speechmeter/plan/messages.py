"""Pydantic's findings in our words: one line with the place, the reason and the way out."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError

from speechmeter.core.errors import PlanError
from speechmeter.core.finding import TARGETS
from speechmeter.core.plugins import nearest
from speechmeter.plan.schema import LimitsEntry, Plan, QualityEntry, ScheduleEntry, SpeechEntry, TraceEntry
from speechmeter.plan.source import KeyPath, Source

_EXAMPLES = {
    "models": "for example `models: [log-mel]`",
    "meters": "for example `meters: [latency, memory]`",
    "limits": "for example `limits: {time_s: 120, memory_gib: 8}`",
    "schedule": "for example `schedule: {wait: 10, warmup: 10, active: 20, repeat: 2}`",
    "kind": "for example `kind: A100` or `kind: {cuda: A100, cpu: laptop}`",
    "audio": "name a sound file, `sample` or `noise`",
    "workload": "for example `workload: audio`",
    "trace": "for example `trace: true` or `trace: {steps: 3}`",
    "save_speech": "for example `save_speech: true` or `save_speech: {prefix: dev, rate: 16000}`",
    "quality": "for example `quality: {normaliser: english, scores: [wer, cer]}` or `quality: {import: scores.csv}`",
}
_SWITCHES: dict[str | int, type[BaseModel]] = {"trace": TraceEntry, "save_speech": SpeechEntry}
"""Keys that are true, false, or a mapping of options."""
_PARTS: dict[str | int, type[BaseModel]] = {
    "limits": LimitsEntry,
    "schedule": ScheduleEntry,
    "quality": QualityEntry,
    **_SWITCHES,
}
_SHARES: dict[str | int, str] = {
    "precision": "between 0 and 1",
    "find_within": "from 0 to below 1",
    "find_margin": "from 0 to below 1",
}
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "a word",
    "tuple": "a list",
    "model": "a mapping",
}


def explain(error: ValidationError, source: Source) -> PlanError:
    """The first finding as a PlanError."""
    findings = error.errors(include_url=False)
    finding, path = findings[0], tuple(findings[0]["loc"])
    if path[0] in _SWITCHES:  # pydantic names each form that was tried: it is the mapping that has keys to be wrong
        tried = [one for one in findings if one["loc"][0] == path[0] and one["loc"][1] != "bool"]
        finding = tried[0] if isinstance(source.data.get(str(path[0])), dict) and tried else finding
        path = (path[0], *finding["loc"][2:])
    key = ".".join(str(part) for part in path)
    slip = get_close_matches(key, [str(given) for given in source.data if given not in Plan.model_fields], n=1)
    if finding["type"] == "missing" and slip:  # `model:` for `models:`
        return PlanError(f"unknown key {slip[0]!r}", where=source.origin((slip[0],)), fix=f"did you mean {key!r}?")
    what, fix = _words(finding, path, key)
    return PlanError(what, where=source.origin(path), fix=fix)


def _words(finding: Any, path: KeyPath, key: str) -> tuple[str, str]:
    kind, value, context = finding["type"], finding["input"], finding.get("ctx", {})
    fix = _EXAMPLES.get(str(path[0]), f"for example `{path[0]}: {_default(str(path[0]))}`")
    if kind == "missing":
        return (f"{key} is missing", fix)
    if kind == "extra_forbidden":
        part = _PARTS.get(path[0], Plan)
        return (f"unknown key {path[-1]!r} in {path[0]}", nearest(str(path[-1]), _keys(part)))
    if kind == "too_short":
        return (f"{path[0]} is empty", fix)
    if kind == "finite_number":
        return (f"{key} must be finite, not {value!r}", fix)
    if path[0] == "find":
        return (f"there is no search {value!r}", nearest(str(value), list(TARGETS)))
    if kind == "literal_error" and path[0] == "quality":
        return (f"{key} takes {context['expected']}, not {value!r}", fix)
    if kind == "greater_than":
        return (f"{key} must be greater than {context['gt']:g}, not {value!r}", fix)
    if path[0] == "rounds":
        return (f"rounds takes `auto` or a whole number from 1 on, not {value!r}", "for example `rounds: 5`")
    if path[0] in _SHARES:
        return (f"{path[0]} takes a share {_SHARES[path[0]]}, not {value!r}", f"for example `{path[0]}: 5%`")
    if kind == "less_than":
        return (f"{key} must be less than {context['lt']:g}, not {value!r}", fix)
    if kind == "greater_than_equal":
        return (f"{key} must be at least {context['ge']:g}, not {value!r}", fix)
    expected = _KINDS.get(kind.partition("_")[0])
    if expected:
        return (f"{key} takes {expected}, not {value!r}", fix)
    return (f"{key}: {finding['msg']}", fix)


def _keys(part: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in part.model_fields.items()]


def _default(key: str) -> Any:
    field = Plan.model_fields.get(key)
    value = field.default if field is not None else "…"
    return "10" if value is None else str(value).lower() if isinstance(value, bool) else value
