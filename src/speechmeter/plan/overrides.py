"""Flags and `--set key=value` laid over a plan file: the later word wins, and messages name the flag."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from speechmeter.core.errors import PlanError
from speechmeter.core.naming import split_name
from speechmeter.plan.source import KeyPath, Source


@dataclass(frozen=True, kw_only=True)
class Override:
    """One key given outside the plan file; `where` is the flag or argument that gave it."""

    path: tuple[str, ...]
    value: Any
    where: str


def from_models(texts: Iterable[str]) -> Override:
    """`--model log-mel --model mine=python:mine.py:make`: the models of a plan, with names where they are given."""
    entries = [_model(*split_name(text, "--model")) for text in texts]
    return Override(path=("models",), value=entries, where="--model")


def _model(name: str | None, load: str) -> str | dict[str, str]:
    return load if name is None else {"name": name, "load": load}


def from_flag(key: str, text: str) -> Override:
    """`--seconds 1,2` → seconds: [1, 2]."""
    return Override(path=(key,), value=_list(text, f"--{key}"), where=f"--{key}")


def from_set(text: str) -> Override:
    """`--set limits.time_s=60`: the value is YAML; a comma makes a list, save in quotes."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise PlanError(f"{text!r} is not key=value", where="--set", fix="for example --set threads=2")
    where = f"--set {key.strip()}"
    plain = _yaml(value, where)
    if isinstance(plain, str) and "," in plain and not value.lstrip().startswith(("'", '"')):
        plain = _list(value, where)
    return Override(path=tuple(key.strip().split(".")), value=plain, where=where)


def apply(source: Source, overrides: Iterable[Override]) -> Source:
    """The source with every override laid over it, in order."""
    data = copy.deepcopy(dict(source.data))
    places = dict(source.places)
    for override in overrides:
        _place(data, override)
        _forget(places, override.path)
        places[override.path] = override.where
    return Source(data=data, places=places, base=source.base)


def from_python(data: Mapping[str, Any]) -> Source:
    """A plan given as keyword arguments or a dict."""
    return Source(data=dict(data), places={(key,): f"argument {key!r}" for key in data})


def _list(text: str, where: str) -> Any:
    stripped = text.strip()
    return _yaml(stripped if stripped.startswith("[") else f"[{stripped}]", where)


def _yaml(text: str, where: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or "not valid YAML"
        raise PlanError(f"cannot read {text!r}: {problem}", where=where, fix="for example 1,2,5") from error


def _place(data: dict[str, Any], override: Override) -> None:
    *parents, last = override.path
    inner = data
    for key in parents:
        inner = inner.setdefault(key, {})
        if not isinstance(inner, dict):
            raise PlanError(f"{key!r} has no keys below it", where=override.where, fix=f"set {key} as a whole")
    inner[last] = override.value


def _forget(places: dict[KeyPath, str], path: KeyPath) -> None:
    for known in [k for k in places if k[: len(path)] == path]:
        del places[known]
