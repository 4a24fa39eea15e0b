"""Utterances of a dataset at their own lengths: batched by count or by seconds, sorted or not, padded with zeros."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from speechmeter.core.axes import BATCH, NONE, Axis, Option
from speechmeter.core.batches import Batches
from speechmeter.core.errors import InputError
from speechmeter.core.finding import check_enough
from speechmeter.core.protocols import FEATURES, SOUND, Fed
from speechmeter.core.types import Batch, Case
from speechmeter.workloads import sound
from speechmeter.workloads.batching import SORTS, grouped, outline, padded
from speechmeter.workloads.manifests.columns import read_columns
from speechmeter.workloads.manifests.formats import AUTO, FORMATS
from speechmeter.workloads.manifests.utterance import MIX
from speechmeter.workloads.selection import FIRST, PICKS, Choice, Selection, check_some, first_bands, select
from speechmeter.workloads.sound import LONGEST_S, Taste

_KEPT_BYTES = 512 * 2**20
"""Decoded sound that is kept between passes; what is beyond it is read again each time."""


class DatasetWorkload:
    """`data`: items of a list or a folder, each at its own length."""

    axes = (
        Axis(name="batch_seconds", kind=float, default=None, above=0,
             help="maximum seconds of audio in a batch, padding included; use it instead of batch"),
        Axis(name="sort", kind=str, default=NONE, help="order of the items by length, before batching", choices=SORTS),
        BATCH,
    )  # fmt: skip
    options = (
        Option(name="manifest", kind=Path, help="a list of utterances, or a folder of sound files"),
        Option(name="format", kind=str, default=AUTO, choices=(AUTO, *FORMATS), help="format of the list"),
        Option(name="root", kind=Path, help="the folder that relative paths in the list start from"),
        Option(
            name="columns",
            kind=str,
            help="names of the columns of a Hugging Face dataset or of a WebDataset's JSON, such as "
            "audio=speech,text=sentence,id=utt,speaker=spk",
        ),
        Option(name="count", kind=int, minimum=1, help="number of items (default: all)"),
        Option(name="pick", kind=str, default=FIRST, choices=PICKS, help="how `count` chooses the items"),
        Option(
            name="longest",
            kind=float,
            default=LONGEST_S,
            above=0,
            help="maximum length of an item in seconds; longer items are left out",
        ),
        Option(
            name="channel",
            kind=(int, str),
            default=MIX,
            minimum=0,
            help="channel to read (the first is 0), or mix: the mean of all",
        ),
    )

    def check(self, case: Case) -> None:
        """The list must exist, have a known format, and have an item with a sound header."""
        if case.axes.get("batch_seconds") is not None and case.axes["batch"] > 1:
            raise InputError("`batch_seconds` and `batch` cannot be combined", key="data", fix="remove one of the two")
        check_enough(case, check_some(choice_of(case)))

    def feeds(self, case: Case) -> Fed:
        """Sound or features, as the first usable item is; the others must be the same."""
        try:
            bands = first_bands(choice_of(case))
        except InputError:  # `check` reports what is wrong with the data
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


def choice_of(case: Case) -> Choice:
    """The choice that a case's options make. Raises InputError where they make none."""
    options = case.workload.options
    root, channel = options.get("root"), options.get("channel", MIX)
    if not options.get("manifest"):
        raise InputError("manifest is missing", key="data", fix="for example `data: {manifest: test.tsv, count: 20}`")
    if isinstance(channel, str) and channel not in (MIX, NONE):
        raise InputError(f"channel takes {MIX} or a number from 0, not {channel!r}", key="data")
    return Choice(
        manifest=Path(options["manifest"]),
        format=options.get("format", AUTO),
        root=Path(root) if root is not None else None,
        columns=read_columns(options.get("columns")),
        count=options.get("count"),
        how=options.get("pick", FIRST),
        seed=case.protocol.seed,
        taste=Taste(longest_s=float(options.get("longest", LONGEST_S)), channel=MIX if channel == NONE else channel),
    )


def read_batches(choice: Choice, *, batch: int, batch_s: float | None = None, sort: str = NONE) -> Batches:
    """All usable items of a choice, batched. Each item is read once here, so that lengths are true, and again when its
    batch is asked for, unless it was kept.
    """
    kept: dict[int, Any] = {}
    room = _KEPT_BYTES

    def keep(index: int, data: Any) -> None:
        nonlocal room
        if data.nbytes <= room:
            kept[index] = data
            room -= data.nbytes

    selection = select(choice, keep=keep)
    groups = grouped([item.seconds for item in selection.items], batch=batch, batch_s=batch_s, sort=sort)
    return _ReadBatches(selection, groups, choice.taste, kept, room)


class _ReadBatches(Batches):
    """Batches whose sound is read when they are asked for, and kept where there is room.

    What was kept first stays: passes go round, so an eviction would remove what is wanted next.
    """

    def __init__(
        self,
        selection: Selection,
        groups: Sequence[tuple[int, ...]],
        taste: Taste,
        kept_items: dict[int, Any],
        room: int,
    ) -> None:
        self.left_out, self.notes = selection.left_out, selection.notes
        self._items, self._groups, self._taste = selection.items, groups, taste
        self._kept_items, self._room = kept_items, room
        self._kept: dict[int, Batch] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def one(self, index: int) -> Batch:
        """The batch, kept from before or read now."""
        if index in self._kept:
            return self._kept[index]
        arrays = []
        for item in self._groups[index]:  # from here on the batch is kept in place of its items
            array = self._kept_items.pop(item, None)
            self._room += 0 if array is None else array.nbytes
            arrays.append(self._read(item) if array is None else array)
        batch = self._batch(index, arrays)
        if batch.data.nbytes <= self._room:
            self._kept[index] = batch
            self._room -= batch.data.nbytes
        return batch

    def outlines(self) -> Iterator[Batch]:
        """Every batch without its data."""
        return map(self._outline, range(len(self)))

    def again(self) -> Iterator[Batch]:
        """Every batch read from its files."""
        return (self._batch(index, list(map(self._read, group))) for index, group in enumerate(self._groups))

    def _read(self, item: int) -> Any:
        return sound.read(self._items[item].utterance, self._taste)

    def _batch(self, index: int, arrays: Sequence[Any]) -> Batch:
        return replace(self._outline(index), data=padded(arrays))

    def _outline(self, index: int) -> Batch:
        group = [self._items[item] for item in self._groups[index]]
        batch = outline(
            [item.utterance.id for item in group],
            [item.length for item in group],
            references=[item.utterance.text for item in group],
            speakers=[item.utterance.speaker for item in group],
        )
        anchors = tuple(item.utterance.anchors for item in group)
        batch = replace(batch, anchors=anchors if any(one.source for one in anchors) else ())
        return replace(batch, audio_s=None, padded_s=None) if group[0].features else batch
