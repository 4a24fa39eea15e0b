"""What a measurement is about: `total`, `stage:model`, `module:encoder.layers.0`. These texts are made and read here.

A scope is a kind and a path. The kind is the text up to the first colon, with it, or the whole text where there is
none: a record of somebody else may have any text. Two things may follow an `@`: the direction of a pass at the end of
any scope (`within:encoder@backward`), and the module that an operator works for (`op:aten::mm@encoder`).
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import final

TOTAL, UNATTRIBUTED = "total", "unattributed"
STAGE, MODULE, LABEL, OPERATOR, PROCESS = "stage:", "module:", "label:", "op:", "process:"
DTYPE, OPERATOR_KIND, SENSOR, SPLIT, BUSY = "dtype:", "kind:", "sensor:", "split:", "busy:"
PART, WITHIN, OWN, CLASS, ROW, OUTSIDE = "part:", "within:", "own:", "class:", "row:", "outside:"
EVERYTHING, ALL_ROWS = "everything", "all rows"
"""Not in records, as are the kinds in the line above: these are put together from what is."""
DIRECTIONS = ("forward", "backward", "recompute")
_AT = "@"
_KEPT = 2**16
"""Scopes that are remembered: more than the modules of a large model, and some MB at most."""


@final
class Scope(str):
    """A scope that knows its parts. It is a text too: it equals the one in a record, and is written as it is.

    Records keep plain texts, as 100,000 of them are read at once: `Scope.parse` is for those that are looked into.
    """

    @staticmethod
    @lru_cache(maxsize=_KEPT)
    def parse(text: str) -> Scope:
        """The scope of a text; every text is one."""
        return Scope(text)

    @classmethod
    def of(cls, kind: str, path: str) -> Scope:
        """The scope of a kind, one of those above, and a path, which may be the text of another scope."""
        return cls(kind + path)

    @cached_property
    def kind(self) -> str:
        """With the colon, so that a module called `label` is no label."""
        head, colon, _ = self.partition(":")
        return head + colon

    @cached_property
    def path(self) -> str:
        """All that follows the kind; empty for `total`."""
        return self[len(self.kind) :]

    @property
    def inner(self) -> Scope:
        """The scope that the path is: `label:x` in `within:label:x`."""
        return Scope.parse(self.path)

    def without(self, kind: str) -> str:
        """The path if it is of this kind, else the whole text."""
        return self.path if self.kind == kind else str(self)

    @property
    def own(self) -> Scope:
        """What is in no module or label inside it: `own:x` of `within:x`; any other is itself."""
        return Scope.of(OWN, self.path) if self.kind == WITHIN else self

    def in_direction(self, direction: str) -> Scope:
        """One direction of it."""
        return Scope(f"{self}{_AT}{direction}")

    @cached_property
    def direction(self) -> str:
        """The direction at the end; empty where all are meant."""
        last = self.rpartition(_AT)[2]
        return last if _AT in self and last in DIRECTIONS else ""

    @property
    def all_directions(self) -> Scope:
        """It without a direction at the end."""
        return Scope.parse(self.rpartition(_AT)[0]) if self.direction else self

    def in_module(self, path: str) -> Scope:
        """What an operator does for one module."""
        return Scope(f"{self}{_AT}{path}")

    @property
    def is_in_module(self) -> bool:
        """Whether it is an operator in one module."""
        return self.kind == OPERATOR and _AT in self

    def operator_and_module(self) -> tuple[Scope, str]:
        """The operator in all modules, and the path of the module that it works for; empty where none is named."""
        operator, _, module = self.partition(_AT)
        return Scope.parse(operator), module


OTHER_MODULES = Scope.of(OUTSIDE, "modules")
LOADING = Scope.of(STAGE, "load")
