"""Items of a list, chosen while it is read, then read one by one: the usable ones with their true lengths."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from speechmeter.core.batches import LeftOut
from speechmeter.core.errors import InputError
from speechmeter.workloads import sound
from speechmeter.workloads.batching import length_s
from speechmeter.workloads.manifests import formats
from speechmeter.workloads.manifests.columns import Columns
from speechmeter.workloads.manifests.plain_lists import contents
from speechmeter.workloads.manifests.utterance import Refused, UnusableError, Utterance
from speechmeter.workloads.sound import RATE, FileFacts, Taste

FIRST, RANDOM, SHORTEST, LONGEST = "first", "random", "shortest", "longest"
PICKS = (FIRST, RANDOM, SHORTEST, LONGEST)
NAMED = 20
"""How many refused items are kept with their reasons; the others are counted."""
_WIDEST = 300

Watch = Callable[[int, int], None]
"""Called after each item with how many are done, of how many."""
Keep = Callable[[int, Any], None]
"""Called with the index of a usable item and its array, which it may keep."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Which items of which list: `count` of them, or all; `how` is one of first, random, shortest, longest.

    With `ids` only items with these ids are chosen from. `key` is the key of a plan that names the list, for messages.
    """

    manifest: Path
    format: str = formats.AUTO
    root: Path | None = None
    columns: Columns = ()
    count: int | None = None
    how: str = FIRST
    ids: frozenset[str] | None = None
    seed: int = 0
    taste: Taste = field(default_factory=Taste)
    key: str = "data"

    def check(self) -> None:
        """Raise InputError for values that make no choice, or a list whose format is not recognised."""
        if self.how != FIRST and self.count is None:
            raise InputError(f"{self.how} needs a count", key="pick", fix="add `count: 20`, for example")
        formats.recognised(self.manifest, self.format)


class Refusals:
    """Counts refused items, and keeps the first of them with their reasons."""

    def __init__(self, before: Refusals | None = None) -> None:
        self.first: list[Refused] = list(before.first) if before else []
        self.kinds: Counter[str] = Counter(before.kinds if before else ())
        self.others: int = before.others if before else 0

    def add(self, item: Refused) -> None:
        """Count it, and keep it if it is among the first."""
        if item.kind:
            self.kinds[item.kind] += 1
            return
        self.others += 1
        if len(self.first) < NAMED:
            self.first.append(item)

    def left_out(self, used: int) -> LeftOut:
        """The report on them, with the number of items that were used."""
        count = self.others + self.kinds.total()
        return LeftOut(
            count=count,
            of=count + used,
            first=tuple((_printable(item.id), _printable(item.reason)) for item in self.first),
            kinds=tuple((_printable(kind), number) for kind, number in self.kinds.most_common()),
        )


def _printable(text: str) -> str:
    """One line, which no list can colour, break or flood."""
    plain = "".join(character if character.isprintable() else " " for character in text[: 2 * _WIDEST])
    plain = " ".join(plain.split())
    return plain if len(plain) <= _WIDEST else f"{plain[:_WIDEST]}…"


@dataclass(frozen=True, kw_only=True)
class Picked:
    """The chosen items in the order of the list, and those that were refused."""

    utterances: tuple[Utterance, ...]
    refused: Refusals


def choose(choice: Choice) -> Picked:
    """Go through the list once, holding only the chosen items. The result for an unchanged list is remembered."""
    choice.check()
    changed = choice.manifest.stat()
    return _chosen(choice, changed.st_mtime_ns, changed.st_size)


@lru_cache(maxsize=2)
def _chosen(choice: Choice, _changed_ns: int, _bytes: int) -> Picked:
    refused = Refusals()

    def usable() -> Iterator[tuple[int, Utterance]]:
        index = 0
        for item in formats.read(choice.manifest, choice.format, choice.root, choice.columns):
            if choice.ids is not None and (isinstance(item, Refused) or item.id not in choice.ids):
                continue
            if isinstance(item, Refused):
                refused.add(item)
            else:
                yield index, item
                index += 1

    if choice.how == FIRST or choice.count is None:
        chosen = list(islice(usable(), choice.count))
    elif choice.how == RANDOM:
        # every item with the same chance, in one pass: the n-th replaces a kept one with probability count / n
        draw, chosen = random.Random(choice.seed), []
        for seen, entry in enumerate(usable()):
            if len(chosen) < choice.count:
                chosen.append(entry)
            elif (kept := draw.randrange(seen + 1)) < choice.count:
                chosen[kept] = entry
    else:
        chosen = _extreme(usable(), choice.count, choice, refused)
    utterances: dict[str, Utterance] = {}
    for _, utterance in sorted(chosen, key=lambda entry: entry[0]):
        if not utterance.id.isprintable() or not utterance.id.strip():
            refused.add(Refused(id=repr(utterance.id), reason="its id cannot be printed"))
        elif utterance.id in utterances:
            refused.add(Refused(id=utterance.id, reason="the list has this id twice"))
        else:
            utterances[utterance.id] = utterance
    return Picked(utterances=tuple(utterances.values()), refused=refused)


def _extreme(
    entries: Iterable[tuple[int, Utterance]], count: int, choice: Choice, refused: Refusals
) -> list[tuple[int, Utterance]]:
    """The shortest or the longest items; of equal ones, those that come first."""
    sign = 1.0 if choice.how == LONGEST else -1.0
    heap: list[tuple[float, int, Utterance]] = []
    for index, utterance in entries:
        length_s = utterance.stated_s
        try:
            length_s = sound.header_seconds(utterance, choice.taste) if length_s is None else length_s
        except UnusableError as error:
            refused.add(Refused(id=utterance.id, reason=str(error)))
            continue
        entry = (sign * length_s, -index, utterance)
        if len(heap) < count:
            heapq.heappush(heap, entry)
        else:
            heapq.heappushpop(heap, entry)
    return [(-index, utterance) for _, index, utterance in heap]


def ids_of(manifest: Path) -> frozenset[str]:
    """The ids of all items of a list. Raises InputError where it cannot be read, or has none."""
    found = frozenset(item.id for item in formats.read(manifest) if isinstance(item, Utterance))
    if not found:
        raise InputError(f"{str(manifest)!r} lists no items", key="data", fix="use a list of utterances")
    return found


def check_some(choice: Choice) -> int:
    """How many items are chosen. Raises InputError when none of them can be used, judged by their headers."""
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
    path = str(choice.manifest)
    left_out = refused.left_out(0)
    if left_out.count:
        what = f"{path!r} has no item that can be used: {left_out.reasons()}"
        fix = None if left_out.kinds else "correct the list or the files"
    elif choice.ids is not None:
        what = f"{path!r} has none of the {len(choice.ids)} ids of the reference set"
        fix = "use a reference set whose ids occur in this list"
    elif choice.manifest.is_dir():
        what = f"{path!r} holds no sound file; it holds {contents(choice.manifest)}"
        fix = "use a folder with sound in it"
    else:
        what, fix = f"{path!r} has no items", "correct the list"
    return InputError(what, key=choice.key, fix=fix)


@dataclass(frozen=True, kw_only=True)
class Usable:
    """An utterance that can be read: its length in samples at 16 kHz, or in frames of features."""

    utterance: Utterance
    length: int
    features: bool
    file: FileFacts

    @property
    def seconds(self) -> float:
        """Its true length in seconds."""
        return length_s(self.length, features=self.features)


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The usable items, and what was left out."""

    items: tuple[Usable, ...]
    left_out: LeftOut

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the sound that its list does not state."""
        return sound_notes([item.file for item in self.items])


def sound_notes(files: Sequence[FileFacts]) -> tuple[str, ...]:
    """What was done to the sound of these files, a line each."""
    resampled = [file.rate for file in files if file.rate != RATE]
    mixed = [file.mixed for file in files if file.mixed > 1]
    rates, channels = (", ".join(map(str, sorted(set(values)))) for values in (resampled, mixed))
    notes = [f"{len(resampled)} of {len(files)} items resampled to {RATE} Hz from {rates} Hz"] if resampled else []
    notes += [f"{len(mixed)} of {len(files)} items mixed to mono from {channels} channels"] if mixed else []
    return tuple(notes)


def select(choice: Choice, *, watch: Watch = lambda done, of: None, keep: Keep = lambda index, data: None) -> Selection:
    """Read every chosen item, one at a time. Raises InputError when none is usable."""
    picked = choose(choice)
    usable: list[Usable] = []
    refused = Refusals(picked.refused)
    for done, utterance in enumerate(picked.utterances, 1):
        try:
            data = sound.read(utterance, choice.taste)
            features = data.ndim == 2
            if usable and usable[0].features is not features:
                raise UnusableError(
                    "contains features, but the first item contains sound"
                    if features
                    else "contains sound, but the first item contains features"
                )
            file = sound.file_facts(utterance, choice.taste, data)
            usable.append(Usable(utterance=utterance, length=len(data), features=features, file=file))
            keep(len(usable) - 1, data)
        except UnusableError as error:
            refused.add(Refused(id=utterance.id, reason=str(error)))
        watch(done, len(picked.utterances))
    if not usable:
        raise _none_usable(choice, refused)
    return Selection(items=tuple(usable), left_out=refused.left_out(len(usable)))
