"""Items of a list, chosen, then read one by one: the usable ones with their true lengths, others with a reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from speechmeter.core.batches import LeftOut
from speechmeter.core.errors import InputError
from speechmeter.workloads import sound
from speechmeter.workloads.batching import length_s
from speechmeter.workloads.manifests import folder, formats
from speechmeter.workloads.manifests.pick import FIRST, PICKS, Picked, Refusals, pick
from speechmeter.workloads.manifests.utterance import MIX, Refused, Utterance
from speechmeter.workloads.manifests.write import Entry
from speechmeter.workloads.sound import RATE, FileFacts, Taste, UnusableError


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Which items of which list: `count` of them, or all; `how` is one of first, random, shortest, longest.

    With `ids` only items of these ids are chosen from. `where` is the key of a plan that names the list, for messages.
    """

    manifest: Path
    format: str = formats.AUTO
    root: Path | None = None
    count: int | None = None
    how: str = FIRST
    ids: frozenset[str] | None = None
    seed: int = 0
    taste: Taste = field(default_factory=Taste)
    where: str = "data"

    def check(self) -> None:
        """Raise InputError for values that make no choice, or a list whose format cannot be told."""
        if self.how not in PICKS:
            raise InputError(f"pick takes one of {', '.join(PICKS)}, not {self.how!r}", where="data")
        if self.how != FIRST and self.count is None:
            raise InputError(f"pick: {self.how} needs a count", where="data", fix="for example count: 20")
        formats.told(self.manifest, self.format)


@dataclass(frozen=True, kw_only=True)
class Usable:
    """An utterance that can be read: its length in samples at 16 kHz, or in frames of features."""

    utterance: Utterance
    length: int
    features: bool
    file: FileFacts

    @property
    def seconds(self) -> float:
        """How long it is."""
        return length_s(self.length, features=self.features)


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The usable items, and what was left out."""

    items: tuple[Usable, ...]
    left_out: LeftOut

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the sound that its list does not say."""
        return sound_notes([item.file for item in self.items])


def sound_notes(files: Sequence[FileFacts]) -> tuple[str, ...]:
    """What was done to the sound of these files, each in a line."""
    resampled = [file.rate for file in files if file.rate != RATE]
    mixed = [file.mixed for file in files if file.mixed > 1]
    rates, channels = (", ".join(map(str, sorted(set(values)))) for values in (resampled, mixed))
    notes = [f"{len(resampled)} of {len(files)} items resampled to {RATE} Hz from {rates} Hz"] if resampled else []
    notes += [f"{len(mixed)} of {len(files)} items mixed to mono from {channels} channels"] if mixed else []
    return tuple(notes)


Watch = Callable[[int, int], None]
"""Told after each item: how many are done, of how many."""
Keep = Callable[[int, Any], None]
"""Given the place of a usable item and its numbers, which may be kept."""


def choose(choice: Choice) -> Picked:
    """Go through the list once. What was chosen from an unchanged list is not chosen again."""
    choice.check()
    changed = choice.manifest.stat()
    return _chosen(choice, changed.st_mtime_ns, changed.st_size)


@lru_cache(maxsize=2)
def _chosen(choice: Choice, _changed_ns: int, _bytes: int) -> Picked:
    def length(utterance: Utterance) -> float | Refused:
        stated_s = utterance.stated_s
        try:
            return sound.header_seconds(utterance, choice.taste) if stated_s is None else stated_s
        except UnusableError as error:
            return Refused(id=utterance.id, reason=str(error))

    items = formats.read(choice.manifest, choice.format, choice.root)
    if choice.ids is not None:
        items = (item for item in items if isinstance(item, Utterance) and item.id in choice.ids)
    return pick(items, choice.how, choice.count, seed=choice.seed, length=length)


def ids_of(manifest: Path) -> frozenset[str]:
    """The ids of all items that a list has. Raises InputError where it cannot be read, or has none."""
    found = frozenset(item.id for item in formats.read(manifest) if isinstance(item, Utterance))
    if not found:
        raise InputError(f"{str(manifest)!r} lists nothing", where="data", fix="name a list of utterances")
    return found


def check_some(choice: Choice) -> int:
    """How many items are chosen. Raises InputError when not one of them can be used, as far as headers tell."""
    picked = choose(choice)
    refused = Refusals(picked.refused)
    for utterance in picked.utterances:
        try:
            sound.header_seconds(utterance, choice.taste)
            return len(picked.utterances)
        except UnusableError as error:
            refused.add(Refused(id=utterance.id, reason=str(error)))
    raise _none_usable(choice, refused)


def first_bands(choice: Choice) -> int | None:
    """Bands of the first chosen item that holds features; None where the items are files, or hold sound."""
    for utterance in choose(choice).utterances:
        if utterance.array is None:
            return None
        with suppress(UnusableError):
            data = sound.read(utterance, choice.taste)
            return int(data.shape[1]) if data.ndim == 2 else None
    return None


def _none_usable(choice: Choice, refused: Refusals) -> InputError:
    path = choice.manifest
    left_out = refused.left_out(0)
    if choice.ids is not None and not left_out.count:
        what = f"{str(path)!r} has none of the {len(choice.ids)} ids of the reference set"
        return InputError(what, where=choice.where, fix="name a reference set whose ids are those of this list")
    if left_out.count:
        what = f"{str(path)!r} has no item that can be used: {left_out.reasons()}"
        return InputError(what, where=choice.where, fix=None if left_out.kinds else "correct the list or the files")
    if path.is_dir():
        what = f"{str(path)!r} holds no sound file; it holds {folder.contents(path)}"
        return InputError(what, where=choice.where, fix="name a folder with sound in it")
    return InputError(
        f"{str(path)!r} has no item that can be used: it lists nothing", where=choice.where, fix="correct the list"
    )


def select(choice: Choice, *, watch: Watch = lambda done, of: None, keep: Keep = lambda place, data: None) -> Selection:
    """Read every chosen item, one at a time. Raises InputError when none is usable."""
    picked = choose(choice)
    usable: list[Usable] = []
    refused = Refusals(picked.refused)
    for done, utterance in enumerate(picked.utterances, 1):
        try:
            data = sound.read(utterance, choice.taste)
            usable.append(_usable(utterance, choice.taste, data, usable))
            keep(len(usable) - 1, data)
        except UnusableError as error:
            refused.add(Refused(id=utterance.id, reason=str(error)))
        watch(done, len(picked.utterances))
    if not usable:
        raise _none_usable(choice, refused)
    return Selection(items=tuple(usable), left_out=refused.left_out(len(usable)))


def _usable(utterance: Utterance, taste: Taste, data: Any, before: list[Usable]) -> Usable:
    features = data.ndim == 2
    if before and before[0].features is not features:
        raise UnusableError("holds features among sound" if features else "holds sound among features")
    file = sound.file_facts(utterance, taste, data)
    return Usable(utterance=utterance, length=len(data), features=features, file=file)


def _heard(item: Usable, taste: Taste) -> Utterance:
    """With the channel that was chosen, where the list itself names none and the file has several."""
    utterance = item.utterance
    chosen = utterance.channel is not None or (taste.channel == MIX and item.file.mixed == 1)
    return utterance if chosen else replace(utterance, channel=taste.channel)


def entries(selection: Selection, choice: Choice) -> list[Entry]:
    """The usable items as a writer takes them."""
    return [
        Entry(
            utterance=_heard(item, choice.taste),
            seconds=item.seconds,
            file_frames=item.file.frames,
            start_s=item.utterance.start_s or item.utterance.start_frame / item.file.rate,
            read=partial(sound.read, item.utterance, choice.taste),
        )
        for item in selection.items
    ]
