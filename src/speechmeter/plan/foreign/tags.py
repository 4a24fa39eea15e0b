"""HyperPyYAML as plain YAML: a tag is kept beside its value and never followed; `!ref <key>` is looked up."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import yaml

from speechmeter.core.errors import PlanError
from speechmeter.plan.source import KeyPath, Source

_REFERENCE = re.compile(r"<([^<>\[\]]+)((?:\[[^<>\[\]]+\])*)>")
_MOST_STEPS = 10_000
"""References to lists of references to lists grow without bound; no real file needs as many."""
_FIX = "replace it with the value that it refers to"


@dataclass(frozen=True, kw_only=True)
class Tagged:
    """A value with a tag that plain YAML does not know."""

    tag: str
    value: Any
    line: int


class TagKeeper(yaml.SafeLoader):
    """A safe loader that gives `Tagged` where it would refuse a tag."""


def _keep(loader: yaml.SafeLoader, node: yaml.Node) -> Tagged:
    if isinstance(node, yaml.MappingNode):
        value: Any = loader.construct_mapping(node, deep=True)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = node.value
    return Tagged(tag=node.tag, value=value, line=node.start_mark.line + 1)


TagKeeper.add_constructor(None, _keep)  # None: every tag that has no constructor of its own


class Values:
    """Plain values of a source read by `TagKeeper`. `used` holds the outermost keys that were asked for or named."""

    def __init__(self, source: Source, name: str) -> None:
        self.used: set[str] = set()
        self._source = source
        self._name = name
        self._steps = 0

    def get(self, path: KeyPath) -> Any:
        """The value of a key, references followed; None when it is absent. PlanError for what would need code."""
        self.used.add(str(path[0]))
        found: Any = self._source.data
        for part in path:
            found = self._follow(found, path, ()) if isinstance(found, Tagged) else found
            if not isinstance(found, dict):
                return None
            found = found.get(part)
        return self._follow(found, path, ())

    def _follow(self, value: Any, path: KeyPath, chain: tuple[str, ...]) -> Any:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise PlanError("too many references", where=self._source.origin(path), fix=_FIX)
        if isinstance(value, Tagged):
            return self._untagged(value, path, chain)
        if isinstance(value, list):
            return [self._follow(item, path, chain) for item in value]
        if isinstance(value, dict):
            return {key: self._follow(item, path, chain) for key, item in value.items()}
        return value

    def _untagged(self, value: Tagged, path: KeyPath, chain: tuple[str, ...]) -> Any:
        where = f"{self._name}:{value.line}"
        if value.tag not in ("!ref", "!copy") or not isinstance(value.value, str):
            raise PlanError(f"the tag {value.tag!r} is not supported, because it may run code", where=where, fix=_FIX)
        text = value.value.strip()
        if text in chain:
            raise PlanError(f"the reference {text!r} refers to itself", where=where, fix=_FIX)
        chain = (*chain, text)
        if whole := _REFERENCE.fullmatch(text):
            return self._follow(self._named(whole, where), path, chain)
        parts = {m[0]: self._follow(self._named(m, where), path, chain) for m in _REFERENCE.finditer(text)}
        if not parts or not all(isinstance(part, str) for part in parts.values()):
            raise PlanError(
                f"{text!r} is not a simple reference such as `!ref <key>`", where=where, fix=f"{_FIX}, or `!ref <key>`"
            )
        return _REFERENCE.sub(lambda m: parts[m[0]], text)

    def _named(self, reference: re.Match[str], where: str) -> Any:
        """What `<key[inner]>` names."""
        keys = [reference[1].strip(), *re.findall(r"\[([^\]]+)\]", reference[2])]
        found: Any = self._source.data
        for key in keys:
            if isinstance(found, list) and key.isdecimal() and int(key) < len(found):
                found = found[int(key)]
            elif isinstance(found, dict) and key in found:
                found = found[key]
            else:
                raise PlanError(f"there is no value that {reference[0]!r} refers to", where=where, fix=_FIX)
        self.used.add(keys[0])
        return found
