"""Items of a list, chosen, then read one by one: the usable ones with their true lengths, others with a reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from speechmeter.core.batches import LeftOut
from speechmeter.core.errors import InputError
from speechmeter.workloads import sound
from speechmeter.workloads.batching import length_s
from speechmeter.workloads.manifests import formats
from speechmeter.workloads.manifests.pick import FIRST, PICKS, TOLD, Picked, pick
from speechmeter.workloads.manifests.utterance import Refused, Utterance
from speechmeter.workloads.manifests.write import Entry
from speechmeter.workloads.sound import RATE, Taste, UnusableError


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Which items of which list: `count` of them, or all; `how` is one of first, random, shortest, longest."""

    manifest: Path
    format: str = formats.AUTO
    root: Path | None = None
    count: int | None = None
    how: str = FIRST
    seed: int = 0
    taste: Taste = field(default_factory=Taste)

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
    rate: int
    file_frames: int

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
        rates = sorted({item.rate for item in self.items if item.rate != RATE})
        count = sum(item.rate != RATE for item in self.items)
        told = ", ".join(f"{rate} Hz" for rate in rates)
        return (f"{count} of {len(self.items)} items resampled to {RATE} Hz from {told}",) if rates else ()


_WIDEST = 300
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
    return pick(items, choice.how, choice.count, seed=choice.seed, length=length)


def check_some(choice: Choice) -> int:
    """How many items are chosen. Raises InputError when not one of them can be used, as far as headers tell."""
    picked = choose(choice)
    reasons = [printable(f"{item.id}: {item.reason}") for item in picked.refused]
    for utterance in picked.utterances:
        try:
            sound.header_seconds(utterance, choice.taste)
            return len(picked.utterances)
        except UnusableError as error:
            reasons.append(printable(f"{utterance.id}: {error}"))
    why = "; ".join(reasons[:3]) or "it lists nothing"
    raise InputError(f"{str(choice.manifest)!r} has no item that can be used: {why}", where="data", fix="mend the list")


def select(choice: Choice, *, watch: Watch = lambda done, of: None, keep: Keep = lambda place, data: None) -> Selection:
    """Read every chosen item, one at a time. Raises InputError when none is usable."""
    picked = choose(choice)
    usable: list[Usable] = []
    refused = list(picked.refused)
    broken = 0
    for done, utterance in enumerate(picked.utterances, 1):
        try:
            data = sound.read(utterance, choice.taste)
            usable.append(_usable(utterance, data, usable))
            keep(len(usable) - 1, data)
        except UnusableError as error:
            broken += 1
            refused.append(Refused(id=utterance.id, reason=str(error)))
        watch(done, len(picked.utterances))
    if not usable:
        check_some(choice)
        why = "; ".join(printable(f"{item.id}: {item.reason}") for item in refused[:3])
        raise InputError(f"{str(choice.manifest)!r} has no item that can be used: {why}", where="data")
    first = tuple((printable(item.id), printable(item.reason)) for item in refused[:TOLD])
    count = picked.refused_count + broken
    return Selection(items=tuple(usable), left_out=LeftOut(count=count, of=count + len(usable), first=first))


def printable(text: str) -> str:
    """One line that no list can colour, break or flood."""
    plain = "".join(character if character.isprintable() else " " for character in text[: 2 * _WIDEST])
    plain = " ".join(plain.split())
    return plain if len(plain) <= _WIDEST else f"{plain[:_WIDEST]}…"


def _usable(utterance: Utterance, data: Any, before: list[Usable]) -> Usable:
    features = data.ndim == 2
    if before and before[0].features is not features:
        raise UnusableError("holds features among sound" if features else "holds sound among features")
    rate, frames = sound.file_facts(utterance, data)
    return Usable(utterance=utterance, length=len(data), features=features, rate=rate, file_frames=frames)


def _heard(utterance: Utterance, taste: Taste) -> Utterance:
    """With the channel that was chosen, where the list itself names none."""
    return utterance if utterance.channel is not None else replace(utterance, channel=taste.channel)


def entries(selection: Selection, choice: Choice) -> list[Entry]:
    """The usable items as a writer takes them."""
    return [
        Entry(
            utterance=_heard(item.utterance, choice.taste),
            seconds=item.seconds,
            file_frames=item.file_frames,
            start_s=item.utterance.start_s or item.utterance.start_frame / item.rate,
            read=partial(sound.read, item.utterance, choice.taste),
        )
        for item in selection.items
    ]
