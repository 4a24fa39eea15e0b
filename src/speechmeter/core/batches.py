"""The batches of one pass: all made beforehand, or each one when its turn comes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, overload

from speechmeter.core.types import Batch, Stage


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """Items that a workload could not use: how many of how many, and the first of them as (id, reason).

    `kinds` are endings of sound files that nothing here can decode, with how many there are of each. They are part of
    `count`, and not among the first.
    """

    count: int
    of: int
    first: tuple[tuple[str, str], ...] = field(default=())
    kinds: tuple[tuple[str, int], ...] = field(default=())

    def line(self, most: int = 3) -> str:
        """What a reader must know: `3 of 20 items left out: a.flac: there is no such file; …`."""
        return f"{self.count} of {self.of} items left out: {self.reasons(most)}"

    def reasons(self, most: int = 3) -> str:
        """Why, of each kind and of the first of the others."""
        parts = [f"{name}: {reason}" for name, reason in self.first[:most]]
        if self.kinds:
            counts = ", ".join(f"{count} {ending}" for ending, count in self.kinds)
            ending = self.kinds[0][0]
            parts.insert(0, f"{counts} (cannot be decoded; convert them, for example: ffmpeg -i x{ending} x.wav)")
        more = self.count > sum(count for _, count in self.kinds) + len(self.first[:most])
        return "; ".join([*parts, *(["…"] if more else [])])


class Batches(Sequence[Batch]):
    """Batches by number, the same ones on every pass. One that is asked for may be read at that moment."""

    left_out: LeftOut | None = None
    """None when the workload is one that leaves nothing out."""
    notes: tuple[str, ...] = ()
    """Facts about the input that a reader must know."""
    warnings: tuple[str, ...] = ()
    """What about the input may make figures mislead."""

    @abstractmethod
    def one(self, index: int) -> Batch:
        """The batch with this number, from 0 on."""

    @abstractmethod
    def outlines(self) -> Iterator[Batch]:
        """Every batch, of which the data may be absent: for counting, nothing is read."""

    @abstractmethod
    def again(self) -> Iterator[Batch]:
        """Every batch, loaded anew as if for the first time: what data loading costs."""

    @overload
    def __getitem__(self, index: int) -> Batch: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Batch]: ...
    def __getitem__(self, index: int | slice) -> Batch | Sequence[Batch]:
        """One batch; of a slice, all its batches at once."""
        if isinstance(index, slice):
            return [self.one(at) for at in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"there is no batch {index}: the number of batches is {len(self)}")
        return self.one(index % len(self))


class MadeBatches(Batches):
    """Batches that are all in memory; `make` makes them again."""

    def __init__(
        self,
        batches: Iterable[Batch],
        make: Callable[[], Iterable[Batch]],
        *,
        notes: Sequence[str] = (),
        warnings: Sequence[str] = (),
    ) -> None:
        self._batches = tuple(batches)
        self._make = make
        self.notes, self.warnings = tuple(notes), tuple(warnings)

    def __len__(self) -> int:
        return len(self._batches)

    def one(self, index: int) -> Batch:
        """The batch itself."""
        return self._batches[index]

    def outlines(self) -> Iterator[Batch]:
        """The batches themselves."""
        return iter(self._batches)

    def again(self) -> Iterator[Batch]:
        """What the workload makes when it is asked once more."""
        return iter(self._make())


class ChosenBatches(Batches):
    """Some batches of another, in an order of their own."""

    def __init__(self, batches: Batches, indices: Sequence[int]) -> None:
        self._batches = batches
        self._indices = tuple(indices)
        self.left_out = batches.left_out
        self.notes, self.warnings = batches.notes, batches.warnings

    def __len__(self) -> int:
        return len(self._indices)

    def one(self, index: int) -> Batch:
        """That of the other."""
        return self._batches.one(self._indices[index])

    def outlines(self) -> Iterator[Batch]:
        """Those of the other."""
        return self._chosen(self._batches.outlines())

    def again(self) -> Iterator[Batch]:
        """Those of the other; all of them are loaded for it."""
        return self._chosen(self._batches.again())

    def _chosen(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        wanted = set(self._indices)
        found = {index: batch for index, batch in enumerate(batches) if index in wanted}
        return (found[index] for index in self._indices)


def in_turn(batches: Sequence[Batch], calls: int | None = None) -> Iterator[Batch]:
    """Pass after pass over the batches, so many calls or without end; none of them is held, as `cycle` would."""
    for call in count() if calls is None else range(calls):
        yield batches[call % len(batches)]


def gathered(make: Callable[[], Iterable[Batch]]) -> Batches:
    """What a workload gives: `Batches` as they are, anything else made at once."""
    made = make()
    return made if isinstance(made, Batches) else MadeBatches(made, make)


def text_of(stages: Sequence[Stage], sync: Callable[[], None], samples: Any, rate: int) -> str:
    """What a whole chain makes of one array of samples. Raises TypeError where that is not text."""
    seconds = len(samples) / rate
    batch = Batch(
        data=samples[None], items=1, ids=("live",), lengths=(len(samples),), audio_s=seconds, padded_s=seconds
    )
    return text_through(stages, sync, batch)


def output_of_chain(stages: Sequence[Stage], sync: Callable[[], None], batch: Batch) -> Any:
    """What a whole chain makes of the first item."""
    state: Any = batch
    for stage in stages:
        state = stage.fn(state)
        if hasattr(state, "__next__"):
            state = list(state)
    sync()
    return state[0] if isinstance(state, list | tuple) and state else state


def text_through(stages: Sequence[Stage], sync: Callable[[], None], batch: Batch) -> str:
    """What a whole chain makes of one item. Raises TypeError where that is not text."""
    text = output_of_chain(stages, sync, batch)
    if not isinstance(text, str):
        raise TypeError(f"the output of the model is {type(text).__name__}, not text, so it cannot be live")
    return text


_LONGEST = 5_000_000
"""Numbers in a row; five minutes of sound. More take too long to be moved."""


def other_content(data: Any, turn: int = 1) -> Any:
    """Data of the same form and size with other content; None where it is not known how to make any.

    Numbers change positions, so that all of them stay valid: token ids, samples. Samples are also a little quieter: a
    cache may go by their sum.
    """
    if isinstance(data, str):
        words = data.split()
        return _unless_same(" ".join(words[turn:] + words[:turn]), data)
    if isinstance(data, Mapping):
        return _changed_parts(data, {key: other_content(part, turn) for key, part in data.items()})
    if isinstance(data, list | tuple):
        if data and all(isinstance(part, int) for part in data):
            return _unless_same(type(data)([*data[turn:], *data[:turn]]), data)
        parts = _changed_parts(
            dict(enumerate(data)), {index: other_content(part, turn) for index, part in enumerate(data)}
        )
        return None if parts is None else type(data)(parts.values())
    return _rolled(data, turn)


def _unless_same(moved: Any, data: Any) -> Any:
    return None if moved == data else moved


def _changed_parts(parts: Mapping[Any, Any], changed: Mapping[Any, Any]) -> dict[Any, Any] | None:
    """The parts that can be changed are, the others stay; None where none can."""
    if all(part is None for part in changed.values()):
        return None
    return {key: part if changed[key] is None else changed[key] for key, part in parts.items()}


def _rolled(data: Any, turn: int) -> Any:
    """An array or tensor whose last axis is moved on by a few positions, and a little quieter if it holds fractions."""
    length = data.shape[-1] if getattr(data, "shape", ()) else 0
    if not 3 <= length <= _LONGEST or not hasattr(data, "reshape"):
        return None
    moved = data[..., [(at + turn) % length for at in range(length)]]
    if "float" in str(data.dtype):
        moved = moved * (1 - turn / 100)
    return moved if bool((moved != data).any()) else None
