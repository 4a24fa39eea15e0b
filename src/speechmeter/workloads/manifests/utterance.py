"""What every list of utterances is read into: an utterance, or a line that is refused with its reason."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from itertools import pairwise
from math import isfinite, nan
from pathlib import Path
from typing import Any

from speechmeter.core.live import Anchors, Word
from speechmeter.workloads.manifests.inside import Inside

USUAL_RATE = 16_000
"""The rate in Hz that is assumed where a list counts samples and does not state their rate."""
MIX = "mix"
"""In place of the number of a channel: the mean of all channels."""
PACKAGE = "package:"
"""How the path of a file inside an installed package begins: `package:name/path/in/it.wav`."""
_SPEAKERS = ("speaker", "speaker_id", "spk_id", "spk", "client_id")
_MOST = 2**53
_UNKNOWN = Anchors()
_DIGITS = re.compile(r"[0-9]{1,15}")


class UnusableError(Exception):
    """An item cannot be used: the reason in one line."""


@dataclass(frozen=True, kw_only=True)
class Utterance:
    """One item of a list, as the list states it; nothing of the sound has been read.

    `path` is as written and starts from `folder`. `duration_s` or `frames` is how long it is said to be, frames at the
    file's own rate. A `part` of its file begins at `start_s` or `start_frame` and may end before the file does; any
    other item is a whole file. `channel` is one of the file's, from 0 on, or `mix` for their mean. `tokens`
    is how many the text has, and `feature_frames` how many frames its features have, where the list says so. `array`
    takes the place of a file where the list itself holds the numbers. `inside` says where in the file the sound is, if
    it is not all of it. `anchors` say where in the item speech is.
    """

    id: str
    path: str = ""
    folder: str = ""
    part: bool = False
    start_s: float = 0.0
    start_frame: int = 0
    duration_s: float | None = None
    frames: int | None = None
    rate: int | None = None
    channel: int | str | None = None
    text: str | None = None
    speaker: str | None = None
    tokens: int | None = None
    feature_frames: int | None = None
    array: Any = None
    inside: Inside | None = None
    anchors: Anchors = _UNKNOWN

    @property
    def file(self) -> Path:
        """The sound file: in the named package, below the list's folder, or else below the working directory."""
        if self.path.startswith(PACKAGE):
            return _packaged(self.path.removeprefix(PACKAGE))
        inside, here = Path(self.folder) / self.path, Path(self.path)
        return here if not os.path.exists(inside) and os.path.exists(here) else inside  # noqa: PTH110 - never raises

    @property
    def stated_s(self) -> float | None:
        """How long the list says it is, in seconds; None when it does not say."""
        if self.duration_s is not None:
            return self.duration_s
        return self.frames / (self.rate or USUAL_RATE) if self.frames is not None else None


@dataclass(frozen=True, kw_only=True)
class Refused:
    """An item that cannot be used: its id or its line, and the reason in one line.

    `kind` is the ending of a sound file that cannot be decoded, such as `.m4a`: there may be thousands of them, all for
    one reason. `stated` is what the list says about an item whose sound is in no file: lengths and text are enough for
    shapes.
    """

    id: str
    reason: str
    kind: str = ""
    stated: Utterance | None = None


@lru_cache(maxsize=256)
def _packaged(path: str) -> Path:
    """A file of an installed package, which is looked up and not imported."""
    name, _, inside = path.partition("/")
    spec = find_spec(name) if name.isidentifier() else None
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    return Path(folders[0], inside) if folders else Path(path)


def by_line(
    rows: Iterable[tuple[str, Mapping[str, Any] | str]], make: Callable[[Mapping[str, Any]], Utterance]
) -> Iterator[Utterance | Refused]:
    """What `make` gives for the fields of each line; refused where it raises ValueError, or there are no fields."""
    for line, fields in rows:
        try:
            if isinstance(fields, str):
                raise ValueError(fields)
            yield make(fields)
        except ValueError as error:
            yield Refused(id=line, reason=str(error))


def seconds(fields: Mapping[str, Any], key: str) -> float | None:
    """A field in seconds; None when it is absent or empty. Raises ValueError when it is no number from 0 on."""
    value = fields.get(key)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{key} is {value!r}, not a number of seconds")
    try:
        number = float(value)
    except (ValueError, OverflowError):
        number = nan
    if not isfinite(number) or number < 0:
        raise ValueError(f"{key} is {value!r}, not a number of seconds")
    return number


def lasting(start_s: float, end_s: float | None) -> float | None:
    """Seconds from start to end; None when there is no end. Raises ValueError when the end is not after the start."""
    if end_s is not None and end_s <= start_s:
        raise ValueError(f"the end ({end_s:g} s) must be after the start ({start_s:g} s)")
    return None if end_s is None else end_s - start_s


def whole(fields: Mapping[str, Any], key: str) -> int | None:
    """A whole number; None when it is absent or empty. Raises ValueError when it is something else."""
    value = fields.get(key)
    if value is None or value == "":
        return None
    if isinstance(value, str) and _DIGITS.fullmatch(value.strip()):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MOST:
        raise ValueError(f"{key} is {_short(value)}, not a whole number")
    return value


def token_count(fields: Mapping[str, Any]) -> int | None:
    """The number in `tokens`, or how many a list there has; None for anything else, which is not an error."""
    value = fields.get("tokens")
    if isinstance(value, list):
        return len(value)
    try:
        return whole(fields, "tokens")
    except ValueError:
        return None


def _short(value: Any) -> str:
    """A value for a message; a number may have thousands of digits."""
    return repr(value) if not isinstance(value, int) or abs(value) < _MOST else f"at least {_MOST}"


def first_text(fields: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    """The first of the fields that holds text; None when none does."""
    return next((fields[key] for key in keys if isinstance(fields.get(key), str)), None)


def speaker_of(fields: Mapping[str, Any]) -> str | None:
    """The speaker, where a field names one; a number is a name too."""
    found = (fields.get(key) for key in _SPEAKERS)
    return next((str(name) for name in found if isinstance(name, str | int) and str(name).strip()), None)


def transcript(fields: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    """The text of an item: the first field that is there; None when none is. Raises ValueError when it is not text."""
    found = next(((key, fields[key]) for key in keys if fields.get(key) is not None), None)
    if found is None:
        return None
    key, text = found
    if not isinstance(text, str):
        raise ValueError(f"{key} is {_short(text)}, not text")
    return text


def anchors_of(fields: Mapping[str, Any]) -> Anchors:
    """Where speech is, in seconds from the start of the item: `speech_start_s`, `speech_end_s`, `words`.

    A word is [text, start, end], or a mapping with word (or text), start and end. A text in `words` is the transcript
    of other formats, and no anchors. Raises ValueError for values that cannot be.
    """
    start_s, end_s = seconds(fields, "speech_start_s"), seconds(fields, "speech_end_s")
    if start_s is not None:
        lasting(start_s, end_s)
    given = fields.get("words")
    words = tuple(map(_word, given)) if isinstance(given, list) else ()
    if start_s is None and end_s is None and not words:
        return _UNKNOWN
    if any(later.start_s < earlier.start_s for earlier, later in pairwise(words)):
        raise ValueError("words are not in order of their start")
    return Anchors(
        speech_start_s=words[0].start_s if start_s is None and words else start_s,
        speech_end_s=words[-1].end_s if end_s is None and words else end_s,
        words=words,
        source=first_text(fields, ("anchors_source",)) or "manifest",
    )


def _word(given: Any) -> Word:
    if isinstance(given, list | tuple) and len(given) == 3:
        given = dict(zip(("word", "start", "end"), given, strict=True))
    if not isinstance(given, Mapping):
        raise ValueError(f"a word is {_short(given)}, not [text, start, end]")
    text = first_text(given, ("word", "text"))
    start_s, end_s = seconds(given, "start"), seconds(given, "end")
    if not text or start_s is None or end_s is None:
        raise ValueError("a word needs text, start and end")
    if end_s < start_s:
        raise ValueError(f"the word {text!r} ends ({end_s:g} s) before it starts ({start_s:g} s)")
    return Word(text=text, start_s=start_s, end_s=end_s)


def without_suffix(path: str) -> str:
    """`train/a.flac` as `train/a`: the id of an item that has no other. Of an absolute path, the file's stem.

    Without pathlib, which is slow for a million lines and interns every name.
    """
    folder, slash, name = path.rpartition("/")
    stem = name.rpartition(".")[0] or name
    return stem if path.startswith("/") else f"{folder}{slash}{stem}".removeprefix("./")
