"""The steps of a `schedule`: which calls it makes, which of them it keeps, and which batch each one is fed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

SCHEDULE = "schedule"
"""The mode of a protocol that has one."""


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Steps are numbered from 0 through all cycles. Those that wait or warm up are fed batches too, all in turn.

    A cycle is `lead` steps that are not kept (wait and warm-up), then `active` ones that are. There are `repeat` cycles
    over `batches` batches: step n is fed batch n modulo their number.
    """

    lead: int
    active: int
    repeat: int
    batches: int

    @classmethod
    def of(cls, protocol: Mapping[str, Any], batches: int) -> Steps | None:
        """Those of a protocol over so many batches; None where it has no schedule."""
        if protocol.get("mode") != SCHEDULE:
            return None
        lead = int(protocol["wait"]) + int(protocol["warmup"])
        return cls(lead=lead, active=int(protocol["active"]), repeat=int(protocol["repeat"]), batches=batches)

    def is_kept(self, step: int) -> bool:
        """Whether a step is a sample."""
        return step % (self.lead + self.active) >= self.lead

    @property
    def all(self) -> range:
        """Every step."""
        return range(self.repeat * (self.lead + self.active))

    @cached_property
    def kept(self) -> tuple[int, ...]:
        """The steps that are samples."""
        return tuple(step for step in self.all if self.is_kept(step))

    @cached_property
    def measured(self) -> tuple[int, ...]:
        """The batches of these, each once, in the order in which they are measured first."""
        return tuple(dict.fromkeys(step % self.batches for step in self.kept))

    @cached_property
    def places(self) -> tuple[int, ...]:
        """For each sample the place of its batch among those that are measured."""
        place_of = {batch: place for place, batch in enumerate(self.measured)}
        return tuple(place_of[step % self.batches] for step in self.kept)

    @property
    def in_turn(self) -> bool:
        """Whether the samples go through the measured batches one after another, and so on again."""
        return in_turn(self.places) == len(self.places)

    def note(self) -> str:
        """What a reader must know where not every batch is measured; else nothing."""
        if len(self.measured) == self.batches:
            return ""
        cycle = self.lead + self.active
        spans = [(first + self.lead, first + cycle - 1) for first in self.all[::cycle]]
        steps = ", ".join(f"{first}" if first == last else f"{first}–{last}" for first, last in spans[:_MOST_SPANS])
        more = ", …" if len(spans) > _MOST_SPANS else ""
        return f"schedule: steps {steps}{more} are measured, {len(self.measured)} of {self.batches} batches"


_MOST_SPANS = 4


def in_turn(places: Sequence[int]) -> int:
    """How many of these come in turn: 0, 1, 2, … to the highest, and so on again."""
    count = next((index for index, place in enumerate(places) if place != index), len(places))
    return next((index for index, place in enumerate(places) if place != index % count), len(places))
