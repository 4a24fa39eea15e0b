"""Sound that libsndfile does not decode, such as AAC in `.m4a`: decoded by PyAV where that is installed.

The container's format is set from the first bytes. FFmpeg is never left to guess it: it would take some texts for
playlists, and open the files and addresses in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

_MOST_DECODED = 2 << 30
"""Bytes of float32, as of any other sound."""
_MAGIC = (
    (4, b"ftyp", "mov"), (0, b"\x1aE\xdf\xa3", "matroska"), (0, b"0&\xb2u\x8ef\xcf\x11", "asf"), (0, b"#!AMR", "amr"),
    (0, b"\xff\xf1", "aac"), (0, b"\xff\xf9", "aac"), (0, b"\x0bw", "ac3"), (0, b"MAC ", "ape"), (0, b"wvpk", "wv"),
)  # fmt: skip
_HEAD = 16


class UndecodableError(Exception):
    """The sound cannot be decoded: the reason in one line."""


def is_installed() -> bool:
    """Whether PyAV is here."""
    return find_spec("av") is not None


class Decoded:
    """Decoded sound with the part of `soundfile.SoundFile` that is read here."""

    def __init__(self, samples: Any, rate: int) -> None:
        self.samplerate, self.frames, self.channels = rate, len(samples), samples.shape[1]
        self._samples, self._at = samples, 0

    def seek(self, frame: int) -> None:
        """Continue at a frame."""
        self._at = frame

    def read(self, frames: int, dtype: str = "float32", always_2d: bool = True) -> Any:
        """The next frames, (frames, channels)."""
        block = self._samples[self._at : self._at + frames]
        self._at += len(block)
        return block


def decoded(source: Path | bytes) -> Decoded:
    """The first sound track, at its own rate. Raises UndecodableError for what is none of the known containers."""
    with _opened(source) as file:
        head = file.read(_HEAD)
        file.seek(0)
        format = next((name for at, magic, name in _MAGIC if head[at : at + len(magic)] == magic), None)
        if format is None:
            raise UndecodableError("its content is not recognised as sound")
        return _decoded(file, format)


@contextmanager
def _opened(source: Path | bytes) -> Iterator[BinaryIO]:
    if isinstance(source, bytes):
        yield BytesIO(source)
        return
    with source.open("rb") as file:
        yield file


def _decoded(file: BinaryIO, format: str) -> Decoded:
    import av
    import numpy as np

    try:
        with av.open(file, format=format, metadata_errors="ignore") as container:
            if not container.streams.audio:
                raise UndecodableError("it has no sound track")
            track = container.streams.audio[0]
            blocks = list(_blocks(container, track, av.AudioResampler(format="fltp")))
            rate = int(track.rate)
    except (av.FFmpegError, ValueError, TypeError, MemoryError) as error:
        raise UndecodableError(" ".join(str(error).split())) from error
    if not blocks:
        raise UndecodableError("its sound track is empty")
    return Decoded(np.ascontiguousarray(np.concatenate(blocks, axis=1).T), rate)


def _blocks(container: Any, track: Any, resampler: Any) -> Iterator[Any]:
    """Arrays (channels, samples) of float32; never more than a sound may have."""
    size = 0
    for frame in _frames(container, track, resampler):
        block = frame.to_ndarray()
        size += block.nbytes
        if size > _MOST_DECODED:
            raise UndecodableError(f"decodes to more than {_MOST_DECODED >> 30} GiB; shorten it")
        yield block


def _frames(container: Any, track: Any, resampler: Any) -> Iterator[Any]:
    for frame in container.decode(track):
        yield from resampler.resample(frame)
    yield from resampler.resample(None)  # what is left in it
