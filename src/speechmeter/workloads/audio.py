"""Audio at 16 kHz: noise, the shipped speech or a file, cut or repeated to the asked seconds; or a folder of files."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from speechmeter.core.axes import Axis
from speechmeter.core.errors import InputError
from speechmeter.core.types import Batch, Case

RATE = 16_000
_NOISE_LEVEL = 0.1
_SAMPLE = "harbour"
_SUFFIXES = frozenset({".wav", ".flac", ".mp3", ".ogg", ".opus", ".aiff", ".au"})
_FIX = "name a sound file, a folder of them, `sample` or `noise`"


class AudioWorkload:
    """One batch of `batch` items, each `seconds` long; its data is a float32 array (batch, samples).

    Of a folder every sound file is an item of its own length, `batch` of them at a time, padded with silence.
    """

    axes = (
        Axis(name="seconds", kind=float, default=5.0, help="seconds of audio in each item", above=0),
        Axis(name="batch", kind=int, default=1, help="items in a call", minimum=1),
    )
    options = ()

    def check(self, case: Case) -> None:
        """The file must be there and be sound."""
        source = case.workload.source
        if source in ("noise", "sample"):
            return
        path = Path(source)
        if path.is_dir():
            found = sound_files(path)
            if not found:
                raise InputError(f"audio {source!r} holds no sound file", where="audio", fix="name another folder")
            for file in found:
                _header(file)
            return
        if not path.is_file():
            raise InputError(f"audio {source!r} does not exist", where="audio", fix=_FIX)
        _header(path)

    def batches(self, case: Case) -> Iterator[Batch]:
        """The one batch of this cell, or those of a folder."""
        import numpy as np

        if Path(case.workload.source).is_dir():
            yield from _folder_batches(Path(case.workload.source), int(case.axes["batch"]))
            return
        items = int(case.axes["batch"])
        samples = max(1, round(float(case.axes["seconds"]) * RATE))
        seed = int(case.protocol.get("seed", 0))
        source = case.workload.source
        if source == "noise":
            data = np.random.default_rng(seed).standard_normal((items, samples), dtype=np.float32)
            data *= np.float32(_NOISE_LEVEL)
        else:
            voice = read_sample()[0] if source == "sample" else read_audio(Path(source))
            data = np.tile(np.resize(voice, samples), (items, 1))
        yield Batch(
            data=data,
            items=items,
            ids=tuple(f"{case.workload.name}-{index}" for index in range(items)),
            lengths=(samples,) * items,
            audio_s=items * samples / RATE,
            padded_s=items * samples / RATE,
        )


def sound_files(folder: Path) -> list[Path]:
    """The sound files of a folder, by name."""
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in _SUFFIXES)


def _folder_batches(folder: Path, size: int) -> Iterator[Batch]:
    import numpy as np

    found = sound_files(folder)
    for start in range(0, len(found), size):
        part = found[start : start + size]
        voices = [read_audio(path) for path in part]
        data: Any = np.zeros((len(part), max(map(len, voices))), dtype=np.float32)
        for row, voice in enumerate(voices):
            data[row, : len(voice)] = voice
        yield Batch(
            data=data,
            items=len(part),
            ids=tuple(path.stem for path in part),
            lengths=tuple(map(len, voices)),
            audio_s=sum(map(len, voices)) / RATE,
            padded_s=data.size / RATE,
        )


def read_audio(path: Path) -> Any:
    """A file as mono float32 at 16 kHz. Raises InputError when it is not sound or holds none."""
    import numpy as np
    import soundfile
    import soxr

    _header(path)
    data, rate = soundfile.read(path, dtype="float32", always_2d=True)
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
