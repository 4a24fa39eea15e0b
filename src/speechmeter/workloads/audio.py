"""Audio at 16 kHz: noise, the shipped speech or a file, cut or repeated to the asked seconds; cuts of many lengths from
one of these; or a folder of files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib.resources import as_file, files
from math import inf
from pathlib import Path
from typing import Any

from speechmeter.core.axes import Axis
from speechmeter.core.errors import InputError
from speechmeter.core.feeding import SOUND
from speechmeter.core.finding import check_enough
from speechmeter.core.types import Batch, Case, Spec
from speechmeter.workloads.batching import outline, padded
from speechmeter.workloads.manifests.folder import sound_files
from speechmeter.workloads.sound import RATE

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
    options = ("count", "shortest", "longest")
    feeds = (SOUND,)

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
            found = sound_files(path)
            if not found:
                raise InputError(f"audio {source!r} holds no sound file", where="audio", fix="name another folder")
            for file in found:
                _header(file)
            check_enough(case, len(found))
            return
        if not path.is_file():
            raise InputError(f"audio {source!r} does not exist", where="audio", fix=_FIX)
        _header(path)

    def batches(self, case: Case) -> Iterator[Batch]:
        """The one batch of this cell, or those of a folder or of random cuts."""
        import numpy as np

        if Path(case.workload.source).is_dir():
            found = [(path.stem, path) for path in sound_files(Path(case.workload.source))]
            yield from _padded_batches(found, read_audio, int(case.axes["batch"]))
            return
        if "count" in case.workload.options:
            yield from _padded_batches(_cuts(case), lambda cut: cut, int(case.axes["batch"]))
            return
        items = int(case.axes["batch"])
        samples = max(1, round(float(case.axes["seconds"]) * RATE))
        seed = int(case.protocol.get("seed", 0))
        source = case.workload.source
        references: tuple[str, ...] = ()
        if source == "noise":
            data = np.random.default_rng(seed).standard_normal((items, samples), dtype=np.float32)
            data *= np.float32(_NOISE_LEVEL)
        else:
            voice = read_sample()[0] if source == "sample" else read_audio(Path(source))
            data = np.tile(np.resize(voice, samples), (items, 1))
            # the transcript is that of the whole, not of a cut; copies in a batch are no utterances of their own
            if source == "sample" and samples == len(voice) and items == 1:
                references = (sample_transcript(),)
        yield Batch(
            data=data,
            items=items,
            ids=tuple(f"{case.workload.name}-{index}" for index in range(items)),
            lengths=(samples,) * items,
            audio_s=items * samples / RATE,
            padded_s=items * samples / RATE,
            references=references,
        )


def _padded_batches(items: Sequence[tuple[str, Any]], read: Callable[[Any], Any], size: int) -> Iterator[Batch]:
    """Named items of their own lengths, `size` at a time, padded with silence; each is read when its turn comes."""
    for start in range(0, len(items), size):
        part = items[start : start + size]
        voices = [read(item) for _, item in part]
        yield replace(outline([name for name, _ in part], [len(voice) for voice in voices]), data=padded(voices))


def _cuts(case: Case) -> list[tuple[str, Any]]:
    """Seeded cuts: all lengths first, so that another source of sound is cut to the same ones."""
    import numpy as np

    options, name = case.workload.options, case.workload.name
    draw = np.random.default_rng(int(case.protocol.get("seed", 0)))
    least, most = (max(1, round(options[end] * RATE)) for end in _ENDS)
    lengths = draw.integers(least, most + 1, size=options["count"])
    if case.workload.source == "noise":
        voice = draw.standard_normal(most, dtype=np.float32) * np.float32(_NOISE_LEVEL)
    else:
        voice = read_sample()[0] if case.workload.source == "sample" else read_audio(Path(case.workload.source))
    starts = draw.integers(0, len(voice), size=len(lengths))
    return [
        (f"{name}-{index:03d}", np.resize(np.roll(voice, -start), length))
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


def read_audio(path: Path) -> Any:
    """A file as mono float32 at 16 kHz. Raises InputError when it is not sound or holds none."""
    import numpy as np
    import soundfile
    import soxr

    _header(path)
    try:
        data, rate = soundfile.read(path, dtype="float32", always_2d=True)
    except (soundfile.LibsndfileError, OSError, RuntimeError, MemoryError) as error:
        raise InputError(
            f"audio {str(path)!r} cannot be decoded, it is truncated or damaged: {error}",
            where="audio",
            fix="name another file",
        ) from error
    mono = data.mean(axis=1)
    if rate != RATE:
        mono = soxr.resample(mono, rate, RATE)
    if not len(mono) or not np.isfinite(mono).all():
        raise InputError(f"audio {str(path)!r} holds no usable samples", where="audio", fix="name another file")
    return np.ascontiguousarray(mono, dtype=np.float32)


def read_sample() -> tuple[Any, str]:
    """The speech that ships with the package, mono float32 at 16 kHz, and its transcript."""
    with as_file(files("speechmeter.workloads") / "assets" / f"{_SAMPLE}.flac") as path:
        return read_audio(path), sample_transcript()


def sample_transcript() -> str:
    """What is said in the speech that ships with the package."""
    return (files("speechmeter.workloads") / "assets" / f"{_SAMPLE}.txt").read_text().strip()


def _header(path: Path) -> None:
    import soundfile

    try:
        frames = soundfile.info(str(path)).frames
    except (soundfile.LibsndfileError, OSError, RuntimeError) as error:
        raise InputError(
            f"audio {str(path)!r} cannot be read: {error}",
            where="audio",
            fix="name a WAV, FLAC, MP3 or Opus file",
        ) from error
    if frames == 0:
        raise InputError(f"audio {str(path)!r} is empty", where="audio", fix="name a file with sound in it")
