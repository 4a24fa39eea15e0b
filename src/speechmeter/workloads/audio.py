"""Audio at 16 kHz: noise, the shipped speech or a file, cut or repeated to the asked seconds; cuts of many lengths from
one of these; or a folder of files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from math import inf
from pathlib import Path
from typing import Any

from speechmeter.core.axes import Axis, Option
from speechmeter.core.batches import Batches, MadeBatches
from speechmeter.core.errors import InputError
from speechmeter.core.finding import check_enough
from speechmeter.core.protocols import SOUND, Fed
from speechmeter.core.types import Batch, Case, Spec
from speechmeter.workloads import sound
from speechmeter.workloads.batching import outline, padded
from speechmeter.workloads.dataset import read_batches
from speechmeter.workloads.manifests.formats import FOLDER
from speechmeter.workloads.manifests.utterance import Utterance
from speechmeter.workloads.selection import Choice, check_some, sound_notes
from speechmeter.workloads.sound import RATE, Taste, UnusableError

MOST_REPEATS = 3
"""Sound that is repeated more often than this to fill the asked seconds gets a warning."""
_WHOLE = Taste(longest_s=inf)
"""A file that is cut to size may last as long as memory allows."""
_NOISE_LEVEL = 0.1
_SAMPLE = "harbour"
_ENDS = ("shortest", "longest")
_CUTS = "for example {name: audio, count: 20, shortest: 1.0, longest: 8.0}"
_FIX = "name a sound file, a folder of them, `sample` or `noise`"


class AudioWorkload:
    """One batch of `batch` items, each `seconds` long; its data is a float32 array (batch, samples).

    Of a folder every sound file is an item of its own length, `batch` of them at a time, padded with silence. With
    `count` there are that many items, cut at random places between `shortest` and `longest` seconds long.
    """

    axes = (
        Axis(name="seconds", kind=float, default=5.0, help="seconds of audio in each item", above=0),
        Axis(name="batch", kind=int, default=1, help="items in a call", minimum=1),
    )
    options = (
        Option(name="count"),
        Option(name="shortest"),
        Option(name="longest"),
    )

    def check(self, case: Case) -> None:
        """The file must be there and be sound; cuts must have a number and bounds."""
        source = case.workload.source
        _check_cuts(case.workload)
        if "count" in case.workload.options:
            check_enough(case, case.workload.options["count"])
        if source in ("noise", "sample"):
            return
        path = Path(source)
        if path.is_dir():
            check_enough(case, check_some(_all_of(path)))
            return
        if not path.is_file():
            raise InputError(f"audio {source!r} does not exist", where="audio", fix=_FIX)
        with _refusing(path):
            sound.header_seconds(_file(path), _WHOLE)

    def feeds(self, case: Case) -> Fed:
        """Sound."""
        return Fed(kinds=(SOUND,))

    def batches(self, case: Case) -> Batches:
        """The one batch of this cell, or those of a folder or of random cuts."""
        source, size = case.workload.source, int(case.axes["batch"])
        if Path(source).is_dir():
            return read_batches(_all_of(Path(source)), batch=size)
        if source == "noise":
            return _made(case, None)
        return _made(case, read_voice(source))


@dataclass(frozen=True, kw_only=True)
class Voice:
    """Sound of one file: mono float32 at 16 kHz, what it is called, and what was done to it."""

    data: Any
    name: str
    notes: tuple[str, ...] = ()


def _made(case: Case, voice: Voice | None) -> Batches:
    """Batches of a voice, or of noise, cut or repeated to the lengths that the case asks for."""
    options = case.workload.options
    cut = "count" in options
    longest_s = float(options["longest"] if cut else case.axes["seconds"])

    def make(voice: Voice | None) -> Iterable[Batch]:
        return _padded_batches(_cuts(case, voice), int(case.axes["batch"])) if cut else [_equal_items(case, voice)]

    def again() -> Iterable[Batch]:
        return make(None if voice is None else read_voice(case.workload.source))

    notes, warnings = ([], []) if voice is None else _repeated(voice, longest_s)
    return MadeBatches(make(voice), again, notes=[*(voice.notes if voice else ()), *notes], warnings=warnings)


def _repeated(voice: Voice, longest_s: float) -> tuple[list[str], list[str]]:
    """(notes, warnings) on sound that is shorter than what is asked for."""
    times = max(1, round(longest_s * RATE)) / len(voice.data)
    if times <= 1:
        return [], []
    what = (
        f"{voice.name} lasts {len(voice.data) / RATE:.3g} s and is repeated {times:.3g} times to fill {longest_s:g} s"
    )
    if times <= MOST_REPEATS:
        return [what], []
    return [what], [f"{what}: a model that listens may cost something else on real speech; give longer audio"]


def _equal_items(case: Case, voice: Voice | None) -> Batch:
    """A call of items that all last `seconds`."""
    import numpy as np

    items = int(case.axes["batch"])
    samples = max(1, round(float(case.axes["seconds"]) * RATE))
    references: tuple[str, ...] = ()
    if voice is None:
        data = _noise(np.random.default_rng(case.protocol.seed), (items, samples))
    else:
        data = np.tile(np.resize(voice.data, samples), (items, 1))
        # the transcript is that of the whole, not of a cut; copies in a batch are no utterances of their own
        if case.workload.source == "sample" and samples == len(voice.data) and items == 1:
            references = (sample_transcript(),)
    return Batch(
        data=data,
        items=items,
        ids=tuple(f"{case.workload.name}-{index}" for index in range(items)),
        lengths=(samples,) * items,
        audio_s=items * samples / RATE,
        padded_s=items * samples / RATE,
        references=references,
    )


def _noise(draw: Any, shape: int | tuple[int, int]) -> Any:
    data = draw.standard_normal(shape, dtype="float32")
    data *= _NOISE_LEVEL
    return data


def _padded_batches(items: Sequence[tuple[str, Any]], size: int) -> Iterator[Batch]:
    """Named items of their own lengths, `size` at a time, padded with silence."""
    for start in range(0, len(items), size):
        part = items[start : start + size]
        voices = [voice for _, voice in part]
        yield replace(outline([name for name, _ in part], [len(voice) for voice in voices]), data=padded(voices))


def _cuts(case: Case, voice: Voice | None) -> list[tuple[str, Any]]:
    """Seeded cuts: all lengths first, so that another source of sound is cut to the same ones."""
    import numpy as np

    options, name = case.workload.options, case.workload.name
    draw = np.random.default_rng(case.protocol.seed)
    least, most = (max(1, round(options[end] * RATE)) for end in _ENDS)
    lengths = draw.integers(least, most + 1, size=options["count"])
    data = voice.data if voice is not None else _noise(draw, most)
    starts = draw.integers(0, len(data), size=len(lengths))
    return [
        (f"{name}-{index:03d}", np.resize(np.roll(data, -start), length))
        for index, (start, length) in enumerate(zip(starts, lengths, strict=True))
    ]


def _check_cuts(workload: Spec) -> None:
    options = workload.options
    if not any(key in options for key in ("count", *_ENDS)):
        return
    count = options.get("count")
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise InputError(f"audio: count takes a whole number from 1 on, not {count!r}", where="workload", fix=_CUTS)
    ends = [options.get(end) for end in _ENDS]
    if not all(isinstance(end, int | float) and not isinstance(end, bool) and 0 < end < inf for end in ends):
        raise InputError("audio: shortest and longest take seconds above 0", where="workload", fix=_CUTS)
    if options["shortest"] > options["longest"]:
        raise InputError("audio: shortest is more than longest", where="workload", fix=_CUTS)
    if Path(workload.source).is_dir():
        raise InputError(
            "audio: the files of a folder are as long as they are",
            where="workload",
            fix="drop count, shortest and longest",
        )


def read_voice(source: str) -> Voice:
    """The sample or a file, with what was done to it. Raises InputError when it is not sound or holds none."""
    if source == "sample":
        return Voice(data=read_sample()[0], name=source)
    path = Path(source)
    with _refusing(path):
        data = sound.read(_file(path), _WHOLE)
        return Voice(data=data, name=path.name, notes=sound_notes([sound.file_facts(_file(path), _WHOLE, data)]))


def read_audio(path: Path) -> Any:
    """A file as mono float32 at 16 kHz. Raises InputError when it is not sound or holds none."""
    return read_voice(str(path)).data


def read_sample() -> tuple[Any, str]:
    """The speech that ships with the package, mono float32 at 16 kHz, and its transcript."""
    with as_file(files("speechmeter.workloads") / "assets" / f"{_SAMPLE}.flac") as path:
        return read_audio(path), sample_transcript()


def sample_transcript() -> str:
    """What is said in the speech that ships with the package."""
    return (files("speechmeter.workloads") / "assets" / f"{_SAMPLE}.txt").read_text().strip()


def _all_of(folder: Path) -> Choice:
    """Every sound file in and below a folder, as `data:` chooses them."""
    return Choice(manifest=folder, format=FOLDER, where="audio")


def _file(path: Path) -> Utterance:
    return Utterance(id=path.stem, path=str(path))


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Inside, a file that cannot be used is bad input: there is no other to go on with."""
    try:
        yield
    except UnusableError as error:
        reason = str(error).removeprefix(f"{path}: ")
        raise InputError(f"audio {str(path)!r}: {reason}", where="audio", fix="name another file") from error
