"""Utterances of a dataset at their own lengths: batched by count or by seconds, sorted or not, padded with zeros."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

from speechmeter.core.axes import NONE, Axis, Option
from speechmeter.core.batches import Batches
from speechmeter.core.errors import InputError
from speechmeter.core.finding import check_enough
from speechmeter.core.protocols import FEATURES, SOUND, Fed
from speechmeter.core.types import Batch, Case
from speechmeter.workloads import sound
from speechmeter.workloads.batching import SORTS, grouped, outline, padded
from speechmeter.workloads.manifests.formats import AUTO
from speechmeter.workloads.manifests.pick import FIRST
from speechmeter.workloads.manifests.utterance import MIX
from speechmeter.workloads.selection import Choice, Selection, check_some, first_bands, select
from speechmeter.workloads.sound import LONGEST_S, Taste

_KEPT_BYTES = 512 * 2**20
"""Decoded sound that is kept between passes; what is beyond it is read again each time."""
_EXAMPLE = "for example data: {manifest: test.tsv, count: 20, pick: random}"


class DatasetWorkload:
    """`data`: items of a list or a folder, each at its own length.

    Options: `manifest`, its `format`, the `root` of its paths; `count` items by `pick`; `longest` seconds that an item
    may last; `channel` of files that have several.
    """

    axes = (
        Axis(name="batch_seconds", kind=float, default=None, above=0,
             help="seconds in a call, padding included, in place of batch"),
        Axis(name="sort", kind=str, default=NONE, help="items by length before they are batched", choices=SORTS),
        Axis(name="batch", kind=int, default=1, help="items in a call", minimum=1),
    )  # fmt: skip
    options = (
        Option(name="manifest"),
        Option(name="format"),
        Option(name="root"),
        Option(name="count"),
        Option(name="pick"),
        Option(name="longest"),
        Option(name="channel"),
    )

    def check(self, case: Case) -> None:
        """The list must be there, be of a known format, and have an item whose header is sound."""
        _check_options(case.workload.options)
        if case.axes.get("batch_seconds") is not None and case.axes["batch"] > 1:
            raise InputError(
                "batch_seconds and batch exclude each other", where="data", fix="leave batch at 1 with batch_seconds"
            )
        check_enough(case, check_some(choice_of(case)))

    def feeds(self, case: Case) -> Fed:
        """What the first usable item is, which the others must be too: sound, or features of so many bands."""
        try:
            _check_options(case.workload.options)
            bands = first_bands(choice_of(case))
        except InputError:  # `check` says what is wrong with the data
            return Fed(kinds=(SOUND, FEATURES))
        return Fed(kinds=(SOUND,)) if bands is None else Fed(kinds=(FEATURES,), bands=bands)

    def batches(self, case: Case) -> Batches:
        """All usable items of the choice."""
        return read_batches(
            choice_of(case),
            batch=int(case.axes["batch"]),
            batch_s=case.axes.get("batch_seconds"),
            sort=str(case.axes.get("sort", NONE)),
        )


def read_batches(choice: Choice, *, batch: int, batch_s: float | None = None, sort: str = NONE) -> Batches:
    """All usable items of a choice, batched; each is read once here, so that lengths are true, and then in its turn."""
    store = _Store(_KEPT_BYTES)
    selection = select(choice, keep=lambda place, data: store.put(("item", place), data, data.nbytes))
    groups = grouped([item.seconds for item in selection.items], batch=batch, batch_s=batch_s, sort=sort)
    return _ReadBatches(selection, groups, choice.taste, store)


def choice_of(case: Case) -> Choice:
    """What a case's options say, defaults filled in."""
    options = case.workload.options
    root, channel = options.get("root"), options.get("channel")
    return Choice(
        manifest=Path(options["manifest"]),
        format=options.get("format", AUTO),
        root=Path(root) if root is not None else None,
        count=options.get("count"),
        how=options.get("pick", FIRST),
        seed=case.protocol.seed,
        taste=Taste(
            longest_s=float(options.get("longest", LONGEST_S)), channel=MIX if channel in (None, NONE) else channel
        ),
    )


def _check_options(options: Any) -> None:
    for name in ("manifest", "format", "root", "pick"):
        if not isinstance(options.get(name, ""), str) or (name == "manifest" and not options.get(name)):
            raise InputError(f"data: {name} takes a word, not {options.get(name)!r}", where="data", fix=_EXAMPLE)
    count = options.get("count", 1)
    if not _is_whole(count) or count < 1:
        raise InputError(f"data: count takes a whole number from 1 on, not {count!r}", where="data", fix=_EXAMPLE)
    longest = options.get("longest", LONGEST_S)
    if not (_is_whole(longest) or isinstance(longest, float)) or not isfinite(longest) or longest <= 0:
        raise InputError(f"data: longest takes seconds above 0, not {longest!r}", where="data", fix=_EXAMPLE)
    channel = options.get("channel")
    if channel not in (None, NONE, MIX) and not (_is_whole(channel) and channel >= 0):
        raise InputError(f"data: channel takes {MIX} or a number from 0 on, not {channel!r}", where="data")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


class _Store:
    """Arrays and batches by name up to a number of bytes. What came first stays: passes go round, so the rest would
    push it out just before it is wanted again."""

    def __init__(self, most_bytes: int) -> None:
        self._left = most_bytes
        self._kept: dict[Any, tuple[Any, int]] = {}

    def put(self, name: Any, value: Any, size: int) -> None:
        if size <= self._left and name not in self._kept:
            self._kept[name] = (value, size)
            self._left -= size

    def get(self, name: Any) -> Any:
        return self._kept.get(name, (None, 0))[0]

    def drop(self, name: Any) -> None:
        self._left += self._kept.pop(name, (None, 0))[1]


class _ReadBatches(Batches):
    """Batches whose sound is read when they are asked for, and kept where there is room."""

    def __init__(self, selection: Selection, groups: Sequence[tuple[int, ...]], taste: Taste, store: _Store) -> None:
        self.left_out, self.notes = selection.left_out, selection.notes
        self._items, self._groups, self._taste, self._store = selection.items, groups, taste, store

    def __len__(self) -> int:
        return len(self._groups)

    def one(self, place: int) -> Batch:
        """The batch, kept from before or read now."""
        kept = self._store.get(("batch", place))
        if kept is not None:
            return kept  # type: ignore[no-any-return]
        group = self._groups[place]
        arrays = [self._store.get(("item", item)) for item in group]
        batch = self._batch(
            place, [self._read(item) if array is None else array for item, array in zip(group, arrays, strict=True)]
        )
        for item in group:
            self._store.drop(("item", item))
        self._store.put(("batch", place), batch, batch.data.nbytes)
        return batch

    def outlines(self) -> Iterator[Batch]:
        """Every batch without its data."""
        return map(self._outline, range(len(self)))

    def again(self) -> Iterator[Batch]:
        """Every batch read from its files."""
        return (self._batch(place, list(map(self._read, group))) for place, group in enumerate(self._groups))

    def _read(self, item: int) -> Any:
        return sound.read(self._items[item].utterance, self._taste)

    def _batch(self, place: int, arrays: Sequence[Any]) -> Batch:
        return replace(self._outline(place), data=padded(arrays))

    def _outline(self, place: int) -> Batch:
        group = [self._items[item] for item in self._groups[place]]
        batch = outline(
            [item.utterance.id for item in group],
            [item.length for item in group],
            references=[item.utterance.text for item in group],
            speakers=[item.utterance.speaker for item in group],
        )
        return replace(batch, audio_s=None, padded_s=None) if group[0].features else batch
