"""The keys of a plan and where each was given: a YAML file, read safely, and flags or Python arguments laid over it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from speechmeter.core.errors import Origin, PlanError
from speechmeter.core.plugins import split_interpreter, split_name

LARGEST_PLAN_BYTES = 1_000_000
MOST_VALUES = 100_000
"""More than any plan holds; a few lines of aliases of aliases spell out billions."""

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, kw_only=True)
class Source:
    """Raw keys of a plan, and where each of them was given.

    `base` is the folder that relative paths of a plan file start from; None for flags and Python.
    """

    data: Mapping[str, Any]
    origins: Mapping[KeyPath, Origin] = field(default_factory=dict)
    base: Path | None = None

    def is_override(self, *path: str) -> bool:
        """Whether a key was given outside of the plan file, so that its value does not depend on the file's folder."""
        origin = self.origin(path)
        return origin is not None and origin.where is None

    def origin(self, path: KeyPath) -> Origin | None:
        """Where a key was given, else its nearest parent, else the first key below its outermost one."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.origins:
                return self.origins[path[:length]]
        return next((origin for known, origin in self.origins.items() if known[:1] == path[:1]), None)


def parse_plan(
    text: str, name: str, *, base: Path | None = None, loader: type[yaml.SafeLoader] = yaml.SafeLoader
) -> Source:
    """The keys of a plan given as text; `name` is the file's name in messages.

    Raises PlanError for anything that is not a mapping of what `loader` understands: plain values.
    """
    try:
        node = yaml.compose(text, Loader=loader)
        origins: dict[KeyPath, Origin] = {}
        if node is not None:
            _walk(node, (), name, origins, frozenset())
        data = yaml.load(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}:{mark.line + 1}" if mark else name
        if isinstance(error, yaml.constructor.ConstructorError):
            fix = "remove YAML tags (`!…`); a plan can contain plain values only"
            raise PlanError(f"{error.problem}", where=where, fix=fix) from error
        fix = "check indentation, quotes and brackets"
        raise PlanError(f"not valid YAML: {error.problem}", where=where, fix=fix) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise PlanError(f"not valid YAML: {error}", where=name, fix="check its indentation and quotes") from error
    if not isinstance(data, dict):
        found = "nothing" if data is None else f"a {type(data).__name__}"
        raise PlanError(f"a plan must be a mapping of keys, not {found}", where=name, fix="start with `models:`")
    return Source(data=data, origins=origins, base=base)


def read_text(path: Path) -> str:
    """The text of a plan file. Raises PlanError for what cannot be one."""
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_PLAN_BYTES + 1)
    except FileNotFoundError:
        raise PlanError("the plan file does not exist", where=str(path), fix="check the path") from None
    except IsADirectoryError:
        raise PlanError("this is a directory, not a plan file", where=str(path), fix="use a YAML file") from None
    except OSError as error:
        raise PlanError(f"cannot be read: {error.strerror}", where=str(path), fix="check permissions") from error
    if len(raw) > LARGEST_PLAN_BYTES:
        raise PlanError(
            "the file has more than 1 MB, which is too large for a plan", where=str(path), fix="use a smaller file"
        )
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise PlanError("this is a binary file, not a text file", where=str(path), fix="use a YAML text file")
    return text


def _walk(node: yaml.Node, path: KeyPath, name: str, origins: dict[KeyPath, Origin], above: frozenset[int]) -> None:
    if id(node) in above:
        raise PlanError("a value contains itself", where=f"{name}:{node.start_mark.line + 1}", fix="remove the alias")
    above = above | {id(node)}
    if path:
        origins[path] = Origin(where=f"{name}:{node.start_mark.line + 1}")
    if len(origins) > MOST_VALUES:
        raise PlanError(
            f"the plan has more than {MOST_VALUES} values", where=origins[path], fix="remove aliases of aliases"
        )
    if isinstance(node, yaml.SequenceNode):
        for index, child in enumerate(node.value):
            _walk(child, (*path, index), name, origins, above)
    seen: set[str] = set()
    for key, child in node.value if isinstance(node, yaml.MappingNode) else ():
        where = f"{name}:{key.start_mark.line + 1}"
        if not isinstance(key, yaml.ScalarNode):
            raise PlanError(
                "a key must be a plain word or number, not a list or mapping",
                where=where,
                fix="check the brackets before the colon",
            )
        if key.value in seen:
            raise PlanError(f"the key {key.value!r} appears twice", where=where, fix="keep one of the two")
        seen.add(key.value)
        below = (*path, key.value)
        _walk(child, below, name, origins, above)
        origins[below] = Origin(where=where)


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
    """`log-mel`, `mine=python:mine.py:make@envs/a/bin/python`: the models of a plan, with names and interpreters where
    they are given.
    """
    entries: list[str | dict[str, str]] = []
    for text in texts:
        name, rest = split_name(text)
        load, python = split_interpreter(rest)
        given = {**({} if name is None else {"name": name}), **({} if python is None else {"interpreter": python})}
        entries.append({**given, "load": load} if given else load)
    return Override(path=("models",), value=entries)


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
                raise PlanError(
                    f"{key!r} is not a mapping, so it has no keys", key=override.key, fix=f"set {key} as a whole"
                )
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
