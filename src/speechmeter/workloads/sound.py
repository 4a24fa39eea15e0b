"""The sound of one utterance: checked against what its list states, one channel, 16 kHz. Each refusal has a reason.

Every workload that feeds sound from files reads it here, so that the same rules hold for all of them.
"""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import Any

from speechmeter.workloads import compressed
from speechmeter.workloads.lent import lendable
from speechmeter.workloads.manifests.pickled import Stored
from speechmeter.workloads.manifests.utterance import MIX, UnusableError, Utterance

RATE = 16_000
LONGEST_S = 3600.0
FRAME_S = 0.01
"""A frame of features covers 10 ms of sound, as in every common front-end."""
_SLACK_SHARE, _SLACK_S = 0.01, 0.05  # how far a stated length may differ from the true one
_CUT_WAV = re.compile(r"^ *data *: (\d+) \(should be (\d+)\)", re.M)
_STREAMED = 0x7FFF0000
"""A program that writes to a pipe does not know the size: it puts the largest in its place, or 0."""
_BLOCK = 1 << 20
# Bytes of float32 in one channel: three hours at 48 kHz. A megabyte of silence in FLAC may unpack to as much.
_MOST_DECODED = 2 << 30
_SAMPLE_BYTES = 4


@dataclass(frozen=True, kw_only=True)
class Taste:
    """What is accepted: items up to `longest_s`, and of several channels one, by its number, or their `mix`."""

    longest_s: float = LONGEST_S
    channel: int | str = MIX


@dataclass(frozen=True, kw_only=True)
class FileFacts:
    """Facts of a file: its rate in Hz, its frames, and how many channels were averaged (1: none were)."""

    rate: int
    frames: int
    mixed: int = 1


def read(utterance: Utterance, taste: Taste) -> Any:
    """A float32 array: (samples,) at 16 kHz, or (frames, bands) of features. Raises UnusableError with the reason."""
    import numpy as np

    data = _numbers(utterance, taste) if utterance.array is not None else _sound(utterance, taste)
    if not data.size:
        raise UnusableError("holds no sound")
    if not np.isfinite(data).all():
        raise UnusableError("holds NaN or infinite numbers")
    return np.ascontiguousarray(data, dtype=np.float32)


def file_facts(utterance: Utterance, taste: Taste, data: Any) -> FileFacts:
    """Facts of its file; where the list holds the array, facts of the array that `read` returned."""
    if utterance.array is not None:
        return FileFacts(rate=RATE, frames=len(data))
    rate, frames, mixed = _facts(utterance, taste)
    return FileFacts(rate=rate, frames=frames, mixed=mixed)


@lendable
def _facts(utterance: Utterance, taste: Taste) -> list[int]:
    """Rate, frames, and how many channels are averaged."""
    with _opened(utterance) as file:
        mixed = file.channels if _channel(utterance, file.channels, taste) == MIX else 1
        return [int(file.samplerate), int(file.frames), int(mixed)]


@lendable
def header_seconds(utterance: Utterance, taste: Taste) -> float:
    """Its length by the file's header, after every check that needs no decoding. Raises UnusableError."""
    if utterance.array is not None:
        return seconds_of(read(utterance, taste))
    with _opened(utterance) as file:
        _, frames = _bounds(utterance, file, taste)
        _channel(utterance, file.channels, taste)
        return float(frames / file.samplerate)


def seconds_of(data: Any) -> float:
    """True seconds of an array that `read` returned."""
    return float(len(data) * FRAME_S if data.ndim == 2 else len(data) / RATE)


def _numbers(utterance: Utterance, taste: Taste) -> Any:
    """(1, samples) or (1, frames, bands), as the benchmark's lists hold them, or without the 1."""
    stored = utterance.array
    try:
        data = stored.numpy() if isinstance(stored, Stored) else stored
    except (ValueError, TypeError, MemoryError) as error:
        raise UnusableError(f"cannot be read: {error}") from error
    if data.dtype.kind != "f":
        raise UnusableError(f"holds {data.dtype}, which is neither sound nor features; feed token ids with `text:`")
    if data.ndim > 1 and data.shape[0] == 1:
        data = data[0]
    if data.ndim not in (1, 2):
        raise UnusableError(f"has the shape {data.shape}, not (1, samples) or (1, frames, bands)")
    if data.size and seconds_of(data) > taste.longest_s:
        raise _too_long(seconds_of(data), taste)
    return data


@lendable
def _sound(utterance: Utterance, taste: Taste) -> Any:
    import numpy as np
    import soundfile
    import soxr

    stated_s = utterance.stated_s
    if stated_s is not None and stated_s > taste.longest_s:
        raise _too_long(stated_s, taste)
    with _opened(utterance) as file:
        start, frames = _bounds(utterance, file, taste)
        channel = _channel(utterance, file.channels, taste)
        try:
            if start:  # some truncated files can be decoded up to their end, but cannot seek even to their beginning
                file.seek(start)
            blocks = list(_blocks(file, frames, channel))
        except (soundfile.LibsndfileError, RuntimeError) as error:
            raise UnusableError(f"cannot be decoded, because it is truncated or damaged: {error}") from error
        rate = int(file.samplerate)
    data = np.concatenate(blocks) if blocks else np.zeros(0, np.float32)
    if len(data) < frames:
        raise UnusableError(f"is truncated: only {len(data) / rate:.2f} s of {frames / rate:.2f} s can be decoded")
    return data if rate == RATE else soxr.resample(data, rate, RATE)


def _blocks(file: Any, frames: int, channel: int | str) -> Iterator[Any]:
    # a block at a time, so that a header that promises more than the file holds allocates nothing
    left = frames
    while left > 0:
        block = file.read(min(left, max(1, _BLOCK // file.channels)), dtype="float32", always_2d=True)
        if not len(block):
            return
        left -= len(block)
        yield block.mean(axis=1) if channel == MIX else block[:, channel].copy()


@contextmanager
def _opened(utterance: Utterance) -> Iterator[Any]:
    import soundfile

    path = utterance.file
    try:
        found = path.stat()
    except (OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError)
        raise UnusableError(f"{path}: there is no such file" if missing else f"{path}: {error}") from error
    if not S_ISREG(found.st_mode):
        raise UnusableError(f"{path}: this is not a plain file")
    if found.st_size == 0:
        raise UnusableError(f"{path}: the file is empty")
    try:
        source = str(path) if utterance.inside is None else io.BytesIO(utterance.inside.read(path))
    except (ValueError, OSError) as error:
        raise UnusableError(f"cannot be read from {path.name}: {error}") from error
    try:
        file = soundfile.SoundFile(source)
    except (soundfile.LibsndfileError, OSError, RuntimeError, TypeError) as error:
        file = _of_other_codec(path if isinstance(source, str) else source.getvalue())
        if file is not None:
            yield file
            return
        # libsndfile says of some unknown files that they do not exist; this one exists, as was checked above
        why = str(error).removeprefix(f"Error opening {source!r}: ") if utterance.inside is not None else str(error)
        what = "its content is not recognised as sound" if "does not exist" in why else why
        if utterance.inside is None and path.suffix.lower() not in (
            "",
            ".wav",
        ):  # a codec that libsndfile lacks
            what += f"; convert it: {shlex.join(['ffmpeg', '-i', path.name, f'{path.stem}.wav'])}"
        where = "" if utterance.inside is None else f" from {path.name}"
        raise UnusableError(f"cannot be read{where}: {what}") from error
    with file:
        _check_whole(file)
        yield file


def _check_whole(file: Any) -> None:
    """Refuse a WAV file whose header promises more sound than follows: libsndfile says so in its log alone."""
    said = _CUT_WAV.search(file.extra_info)
    if said is None or not 0 < int(said[1]) < _STREAMED or not int(said[2]):
        return
    there_s = file.frames / file.samplerate
    whole_s = there_s * int(said[1]) / int(said[2])
    if whole_s - there_s > _SLACK_SHARE * whole_s + _SLACK_S:
        raise UnusableError(f"is truncated: its header says {whole_s:.2f} s, but it has {there_s:.2f} s")


def _of_other_codec(source: Path | bytes) -> compressed.Decoded | None:
    """What PyAV decodes; None where it is not installed, or cannot."""
    if not compressed.is_installed():
        return None
    with suppress(compressed.UndecodableError):
        return compressed.decoded(source)
    return None


def _bounds(utterance: Utterance, file: Any, taste: Taste) -> tuple[int, int]:
    """(first frame, frames) at the file's own rate, after comparing what the list states with the file."""
    rate = int(file.samplerate)
    if utterance.rate is not None and utterance.rate != rate:
        raise UnusableError(f"the list says {utterance.rate} Hz, the file has {rate} Hz")
    start = utterance.start_frame or round(utterance.start_s * rate)
    there = max(0, file.frames - start)
    if not file.frames:
        raise UnusableError("holds no sound")
    stated_s = utterance.frames / rate if utterance.frames is not None else utterance.duration_s
    if stated_s is not None and not (utterance.part and stated_s <= there / rate):  # a part may end before its file
        there_s = there / rate
        if abs(stated_s - there_s) > _SLACK_SHARE * there_s + _SLACK_S:
            what = f"but from {start / rate:.2f} s on, the file has" if utterance.part else "but the file has"
            raise UnusableError(f"the list says {stated_s:.2f} s, {what} {there_s:.2f} s")
    frames = min(round(stated_s * rate), there) if stated_s is not None and utterance.part else there
    if frames / rate > taste.longest_s:
        raise _too_long(frames / rate, taste)
    if (decoded_bytes := frames * _SAMPLE_BYTES) > _MOST_DECODED:
        raise UnusableError(
            f"decodes to {decoded_bytes / 2**30:.1f} GiB, more than {_MOST_DECODED >> 30} GiB; shorten it"
        )
    if not frames:
        raise UnusableError(f"begins at {start / rate:.2f} s, but the file has {file.frames / rate:.2f} s")
    return start, frames


def _channel(utterance: Utterance, channels: int, taste: Taste) -> int | str:
    if channels == 1:
        return 0
    wanted = utterance.channel if utterance.channel is not None else taste.channel
    if isinstance(wanted, int) and wanted >= channels:
        raise UnusableError(f"has no channel {wanted}, only channels 0 to {channels - 1}")
    return wanted


def _too_long(found_s: float, taste: Taste) -> UnusableError:
    return UnusableError(
        f"lasts {round(found_s, 2):g} s, more than {taste.longest_s:g} s; shorten it, or raise `longest`"
    )
