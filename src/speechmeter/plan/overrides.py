"""Flags, `key=value` texts and Python arguments laid over a plan file: the later one wins; messages name the key."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from speechmeter.core.errors import Origin, PlanError
from speechmeter.core.plugins import split_name
from speechmeter.plan.source import Source


@dataclass(frozen=True, kw_only=True)
class Override:
    """One key given outside the plan file; `path` is the key, part by part."""

    path: tuple[str, ...]
    value: Any

    @property
    def key(self) -> str:
        """The key as a plan's reader writes it: `limits.time_s`."""
        return ".".join(self.path)


def from_models(texts: Iterable[str]) -> Override:
    """`log-mel`, `mine=python:mine.py:make`: the models of a plan, with names where they are given."""
    named = [split_name(text) for text in texts]
    return Override(path=("models",), value=[load if name is None else {"name": name, "load": load}
                                             for name, load in named])  # fmt: skip


def from_flag(key: str, text: str) -> Override:
    """`1,2` for `seconds` → [1, 2]."""
    return Override(path=(key,), value=_list(text, key))


def from_set(text: str) -> Override:
    """`limits.time_s=60`: the value is YAML; a comma makes a list, unless it is in quotes."""
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals or not key:
        raise PlanError(f"{text!r} is not key=value", key="set", fix="for example `limits.time_s: 60`")
    plain = _yaml(value, key)
    if isinstance(plain, str) and "," in plain and not value.lstrip().startswith(("'", '"')):
        plain = _list(value, key)
    return Override(path=tuple(key.split(".")), value=plain)


def apply(source: Source, overrides: Iterable[Override]) -> Source:
    """The source with every override laid over it, in order."""
    data = copy.deepcopy(dict(source.data))
    origins = dict(source.origins)
    for override in overrides:
        *parents, last = path = override.path
        inner = data
        for key in parents:
            inner = inner.setdefault(key, {})
            if not isinstance(inner, dict):
                raise PlanError(f"{key!r} has no keys below it", key=override.key, fix=f"set {key} as a whole")
        inner[last] = override.value
        origins = {known: origin for known, origin in origins.items() if known[: len(path)] != path}
        origins[path] = Origin(key=override.key)
    return Source(data=data, origins=origins, base=source.base)


def from_python(data: Mapping[str, Any]) -> Source:
    """A plan given as keyword arguments or a dict."""
    return Source(data=dict(data), origins={(key,): Origin(key=str(key)) for key in data})


def _list(text: str, key: str) -> Any:
    stripped = text.strip()
    return _yaml(stripped if stripped.startswith("[") else f"[{stripped}]", key)


def _yaml(text: str, key: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or "not valid YAML"
        raise PlanError(f"cannot read {text!r}: {problem}", key=key, fix="for example 1,2,5") from error
