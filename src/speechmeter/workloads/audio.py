"""Audio at 16 kHz: noise, the shipped speech or a file, cut or repeated to a length; random cuts; or a folder."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from speechmeter.core.axes import BATCH, Axis, Option
from speechmeter.core.batches import Batches, MadeBatches
from speechmeter.core.errors import InputError
from speechmeter.core.finding import check_enough
from speechmeter.core.live import Anchors, Word
from speechmeter.core.protocols import SOUND, Fed
from speechmeter.core.types import Batch, Case
from speechmeter.workloads import sound
from speechmeter.workloads.batching import outline, padded
from speechmeter.workloads.dataset import read_batches
from speechmeter.workloads.manifests.formats import FOLDER
from speechmeter.workloads.manifests.utterance import UnusableError, Utterance
from speechmeter.workloads.selection import Choice, check_some, sound_notes
from speechmeter.workloads.sound import RATE, Taste

MOST_REPEATS = 3
"""Sound that is repeated more often than this to fill the asked seconds gets a warning."""
_WHOLE = Taste(longest_s=math.inf)
"""A file that is cut to size may last as long as memory allows."""
_NOISE_LEVEL = 0.1
_SAMPLE = "harbour"
_CUTS = ("count", "shortest", "longest")
_CUTS_FIX = "for example {name: audio, count: 20, shortest: 1.0, longest: 8.0}"


class AudioWorkload:
    """One batch of `batch` items, each `seconds` long; its data is a float32 array (batch, samples).

    Of a folder every sound file is an item of its own length, `batch` of them at a time, padded with silence. With
    `count` there are that many items, cut at random places between `shortest` and `longest` seconds long.
    """

    axes = (
        Axis(name="seconds", kind=float, default=5.0, help="seconds of audio in each item", above=0),
        BATCH,
    )
    options = (
        Option(
            name="count",
            kind=int,
            minimum=1,
            help="number of excerpts to take from the recording at random positions, instead of the whole recording",
        ),
        Option(name="shortest", kind=float, above=0, help="length of the shortest excerpt in seconds"),
        Option(name="longest", kind=float, above=0, help="length of the longest excerpt in seconds"),
    )

    def check(self, case: Case) -> None:
        """The file must exist and hold sound; cuts need a number and bounds."""
        source, options = case.workload.source, case.workload.options
        path = Path(source)
        if any(key in options for key in _CUTS):
            if any(options.get(key) is None for key in _CUTS):
                raise InputError(
                    "`count`, `shortest` and `longest` must be given together", key="workload", fix=_CUTS_FIX
                )
            if options["shortest"] > options["longest"]:
                raise InputError("`shortest` must be at most `longest`", key="workload", fix=_CUTS_FIX)
            if path.is_dir():
                raise InputError(
                    "each file of a folder is used as a whole, so no excerpts can be taken",
                    key="workload",
                    fix=f"leave out {', '.join(_CUTS)}",
                )
            check_enough(case, options["count"])
        if source in ("noise", "sample"):
            return
        if path.is_dir():
            check_enough(case, check_some(_all_of(path)))
            return
        if not path.is_file():
            raise InputError(
                f"{source!r} does not exist",
                key="audio",
                fix="use an audio file, a folder of audio files, `sample` or `noise`",
            )
        with _refusing(path):
            sound.header_seconds(_file(path), _WHOLE)

    def feeds(self, case: Case) -> Fed:
        """Sound."""
        return Fed(kinds=(SOUND,))

    def batches(self, case: Case) -> Batches:
        """The one batch of this cell, or those of a folder or of random cuts."""
        source, options = case.workload.source, case.workload.options
        if Path(source).is_dir():
            return read_batches(_all_of(Path(source)), batch=int(case.axes["batch"]))
        if source == "noise":
            return MadeBatches(_batches_of(case, None), lambda: _batches_of(case, None))
        voice = read_voice(source)
        notes, warnings = [*voice.notes], []
        longest_s = float(options["longest"] if "count" in options else case.axes["seconds"])
        times = max(1, round(longest_s * RATE)) / len(voice.data)
        if times > 1:
            lasts = f"{voice.name} lasts {len(voice.data) / RATE:.3g} s"
            notes.append(f"{lasts} and is repeated {times:.3g} times to fill {longest_s:g} s")
        if times > MOST_REPEATS:
            costs = "the cost of a recogniser may differ on real speech; use longer audio"
            warnings = [f"{notes[-1]}: {costs}"]
        return MadeBatches(
            _batches_of(case, voice), lambda: _batches_of(case, read_voice(source)), notes=notes, warnings=warnings
        )


@dataclass(frozen=True, kw_only=True)
class Voice:
    """Sound of one file: mono float32 at 16 kHz, its name, and what was done to it."""

    data: Any
    name: str
    notes: tuple[str, ...] = ()


def _batches_of(case: Case, voice: Voice | None) -> Iterable[Batch]:
    """Batches of a voice, or of noise where it is None, cut or repeated to the lengths that the case asks for."""
    return _random_cuts(case, voice) if "count" in case.workload.options else [_equal_items(case, voice)]


def _equal_items(case: Case, voice: Voice | None) -> Batch:
    """A call of items that all last `seconds`."""
    import numpy as np

    items = int(case.axes["batch"])
    samples = max(1, round(float(case.axes["seconds"]) * RATE))
    references: tuple[str, ...] = ()
    anchors: tuple[Anchors, ...] = ()
    if voice is None:
        data = _noise(np.random.default_rng(case.protocol.seed), (items, samples))
    else:
        data = np.tile(np.resize(voice.data, samples), (items, 1))
        # the transcript is that of the whole, not of a cut; copies in a batch are not utterances of their own
        if case.workload.source == "sample" and samples == len(voice.data) and items == 1:
            references = (sample_transcript(),)
        if case.workload.source == "sample":
            anchors = (sample_anchors(samples / RATE, len(voice.data) / RATE),) * items
    return Batch(
        data=data,
        items=items,
        ids=tuple(f"{case.workload.name}-{index}" for index in range(items)),
        lengths=(samples,) * items,
        audio_s=items * samples / RATE,
        padded_s=items * samples / RATE,
        references=references,
        anchors=anchors,
    )


def _random_cuts(case: Case, voice: Voice | None) -> Iterator[Batch]:
    """Seeded cuts. All lengths are drawn first, so that another source of sound is cut to the same ones."""
    import numpy as np

    options, size = case.workload.options, int(case.axes["batch"])
    draw = np.random.default_rng(case.protocol.seed)
    least, most = (max(1, round(options[end] * RATE)) for end in ("shortest", "longest"))
    lengths = draw.integers(least, most + 1, size=options["count"])
    data = voice.data if voice is not None else _noise(draw, most)
    starts = draw.integers(0, len(data), size=len(lengths))
    cuts = [np.resize(np.roll(data, -start), length) for start, length in zip(starts, lengths, strict=True)]
    names = [f"{case.workload.name}-{index:03d}" for index in range(len(cuts))]
    for start in range(0, len(cuts), size):
        part = cuts[start : start + size]
        yield replace(outline(names[start : start + size], [len(cut) for cut in part]), data=padded(part))


def _noise(draw: Any, shape: int | tuple[int, int]) -> Any:
    data = draw.standard_normal(shape, dtype="float32")
    data *= _NOISE_LEVEL
    return data


def read_voice(source: str) -> Voice:
    """The sample or a file, with what was done to it. Raises InputError when it does not hold sound."""
    if source == "sample":
        return Voice(data=read_sample()[0], name=source)
    path = Path(source)
    with _refusing(path):
        data = sound.read(_file(path), _WHOLE)
        return Voice(data=data, name=path.name, notes=sound_notes([sound.file_facts(_file(path), _WHOLE, data)]))


def read_audio(path: Path) -> Any:
    """A file as mono float32 at 16 kHz. Raises InputError when it does not hold sound."""
    return read_voice(str(path)).data


def read_sample() -> tuple[Any, str]:
    """The speech that ships with the package, mono float32 at 16 kHz, and its transcript."""
    with as_file(files("speechmeter.workloads") / "assets" / f"{_SAMPLE}.flac") as path:
        return read_audio(path), sample_transcript()


def sample_transcript() -> str:
    """The transcript of the speech that ships with the package."""
    return (files("speechmeter.workloads") / "assets" / f"{_SAMPLE}.txt").read_text().strip()


def sample_anchors(length_s: float, whole_s: float) -> Anchors:
    """Where speech is in the sample, cut or repeated to a length; `whole_s` is its own."""
    text = (files("speechmeter.workloads") / "assets" / f"{_SAMPLE}.json").read_text()
    once = Anchors.from_json(json.loads(text))
    assert once.speech_start_s is not None and once.speech_end_s is not None
    words: list[Word] = []
    end_s = None
    for copy in range(math.ceil(length_s / whole_s)):
        ahead_s = round(copy * whole_s, 9)
        said = [replace(word, start_s=word.start_s + ahead_s, end_s=word.end_s + ahead_s) for word in once.words]
        begun = [word for word in said if word.start_s < length_s]
        words += [word for word in begun if word.end_s <= length_s]
        end_s = min(begun[-1].end_s, length_s) if begun else end_s
        end_s = once.speech_end_s + ahead_s if once.speech_end_s + ahead_s <= length_s else end_s
    start_s = once.speech_start_s if once.speech_start_s < length_s else None
    return replace(once, speech_start_s=start_s, speech_end_s=end_s, words=tuple(words))


def _all_of(folder: Path) -> Choice:
    """Every sound file in and below a folder, as `data:` chooses them."""
    return Choice(manifest=folder, format=FOLDER, key="audio")


def _file(path: Path) -> Utterance:
    return Utterance(id=path.stem, path=str(path))


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Inside, a file that cannot be used is bad input, because there is no other to continue with."""
    try:
        yield
    except UnusableError as error:
        reason = str(error).removeprefix(f"{path}: ")
        raise InputError(f"{str(path)!r}: {reason}", key="audio", fix="use another file") from error
