"""The batches of one pass: all made beforehand, or each one when its turn comes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import overload

from speechmeter.core.types import Batch


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """Items that a workload could not use: how many of how many, and the first of them as (id, reason)."""

    count: int
    of: int
    first: tuple[tuple[str, str], ...] = field(default=())

    def line(self, most: int = 3) -> str:
        """What a reader must know: `3 of 20 items left out: a.flac: there is no such file; …`."""
        told = "; ".join(f"{name}: {reason}" for name, reason in self.first[:most])
        more = "; …" if self.count > min(most, len(self.first)) else ""
        return f"{self.count} of {self.of} items left out: {told}{more}"


class Batches(Sequence[Batch]):
    """Batches by number, the same ones on every pass. One that is asked for may be read at that moment."""

    left_out: LeftOut | None = None
    """None when the workload is one that leaves nothing out."""
    notes: tuple[str, ...] = ()
    """Facts about the input that a reader must know."""

    @abstractmethod
    def one(self, place: int) -> Batch:
        """The batch with this number, from 0 on."""

    @abstractmethod
    def outlines(self) -> Iterator[Batch]:
        """Every batch, of which the data may be absent: for counting, nothing is read."""

    @abstractmethod
    def again(self) -> Iterator[Batch]:
        """Every batch, loaded anew as if for the first time: what data loading costs."""

    @overload
    def __getitem__(self, place: int) -> Batch: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Batch]: ...
    def __getitem__(self, place: int | slice) -> Batch | Sequence[Batch]:
        """One batch; of a slice, all its batches at once."""
        if isinstance(place, slice):
            return [self.one(index) for index in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(f"there are {len(self)} batches, and {place} is none of them")
        return self.one(place % len(self))


class MadeBatches(Batches):
    """Batches that are all in memory; `make` makes them again."""

    def __init__(self, batches: Iterable[Batch], make: Callable[[], Iterable[Batch]]) -> None:
        self._batches = tuple(batches)
        self._make = make

    def __len__(self) -> int:
        return len(self._batches)

    def one(self, place: int) -> Batch:
        """The batch itself."""
        return self._batches[place]

    def outlines(self) -> Iterator[Batch]:
        """The batches themselves."""
        return iter(self._batches)

    def again(self) -> Iterator[Batch]:
        """What the workload makes when it is asked once more."""
        return iter(self._make())


def in_turn(batches: Sequence[Batch], calls: int | None = None) -> Iterator[Batch]:
    """Pass after pass over the batches, so many calls or without end; none of them is held, as `cycle` would."""
    for call in count() if calls is None else range(calls):
        yield batches[call % len(batches)]


def gathered(make: Callable[[], Iterable[Batch]]) -> Batches:
    """What a workload gives: `Batches` as they are, anything else made at once."""
    made = make()
    return made if isinstance(made, Batches) else MadeBatches(made, make)
