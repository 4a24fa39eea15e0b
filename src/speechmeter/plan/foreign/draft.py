"""A plan of ours in the making: keys, the foreign line that each came from, and what could not be carried over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from speechmeter.core.errors import Origin
from speechmeter.plan.source import KeyPath, Override, Source


@dataclass(frozen=True, kw_only=True)
class Translation:
    """A plan file as keys of ours, the flags that are still to be laid over them, and a line for all that was lost."""

    source: Source
    overrides: tuple[Override, ...]
    notes: tuple[str, ...] = ()


class Draft:
    """Collects a `Translation`. Values land in `data`; `put` keeps the origins of what they were made from."""

    def __init__(self, foreign: Source, overrides: Sequence[Override]) -> None:
        self.foreign = foreign
        self.data: dict[str, Any] = {}
        self._overrides = list(overrides)
        self._origins: dict[KeyPath, Origin] = {}
        self._notes: list[str] = []

    def put(self, key: str, value: Any, origin: KeyPath = ()) -> None:
        """Set a key of ours; messages about it lead to `origin`, the foreign key it came from."""
        self.data[key] = value
        if origin:
            self.trace((key,), origin)

    def trace(self, path: KeyPath, origin: KeyPath) -> None:
        """Let messages about `path`, and the keys below it, lead to the foreign key `origin`."""
        if (where := self.foreign.origin(origin)) is not None:
            self._origins[path] = where
        for known, where in self.foreign.origins.items():
            if known[: len(origin)] == origin:
                below = path + known[len(origin) :]
                self._origins[below] = where

    def note(self, text: str, origin: KeyPath) -> None:
        """Say a thing that the reader must know, in one line with its origin."""
        where = self.foreign.origin(origin)
        self._notes.append(" ".join((f"{where}: {text}" if where else text).split()))

    def flagged(self, key: str) -> bool:
        """Whether a flag gives this key of ours."""
        return any(override.path[0] == key for override in self._overrides)

    def overrule(self, key: str, origin: KeyPath) -> None:
        """Drop flags for a key on which the file has the last word, and say so."""
        for override in [one for one in self._overrides if one.path[0] == key]:
            self._overrides.remove(override)
            self.note(f"`{override.key}` is ignored: in this format, the values in the file take precedence", origin)

    def translation(self) -> Translation:
        """What was collected."""
        source = Source(data=self.data, origins=self._origins, base=self.foreign.base)
        return Translation(source=source, overrides=tuple(self._overrides), notes=tuple(self._notes))
