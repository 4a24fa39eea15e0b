"""Sound as servers take and give it: 16-bit samples, other sampling rates, WAV files."""

from __future__ import annotations

import struct
from typing import Any

from speechmeter.core.errors import ConversationError
from speechmeter.core.live import GARBAGE
from speechmeter.core.types import Speech
from speechmeter.subjects.common import RATE

_FULL_SCALE = 32_767
_INTEGERS, _FLOATS, _EXTENSIBLE = 1, 3, 0xFFFE
"""Formats of WAV files; the extensible one names its own further behind."""
_UNKNOWN_SIZE = 0x7FFF0000
"""Sizes from here on are a way to say that the length is not known."""


def pcm16(samples: Any) -> bytes:
    """Float samples as 16-bit little-endian ones."""
    return bytes((samples.clip(-1, 1) * _FULL_SCALE).astype("<i2").tobytes())


def float32(samples: Any) -> bytes:
    """Float samples as 32-bit little-endian ones."""
    return bytes(samples.astype("<f4").tobytes())


ENCODINGS = {"s16le": pcm16, "f32le": float32}
"""How samples become bytes."""


def wav(pcm: bytes, rate: int = RATE) -> bytes:
    """A WAV file of 16-bit mono samples."""
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(pcm), b"WAVE", b"fmt ", 16, 1, 1, rate, rate * 2, 2, 16,
                       b"data", len(pcm))  # fmt: skip
    return head + pcm


def speech_of(data: bytes, rate: int, channels: int = 1, width: int = 2) -> Speech:
    """Samples of a server: 16 bits or 32-bit floats, several channels as their mean."""
    import numpy as np

    if width not in (2, 4):
        raise ConversationError(f"the sound has {8 * width} bits per sample; 16 are needed", kind=GARBAGE)
    values = np.frombuffer(data, dtype="<i2" if width == 2 else "<f4").astype(np.float32)
    values = values / (_FULL_SCALE + 1) if width == 2 else values
    return Speech(samples=values.reshape(-1, channels).mean(axis=1) if channels > 1 else values, rate=rate)


_TYPES = {
    "audio/mpeg": "MP3", "audio/mp3": "MP3", "audio/ogg": "Ogg (Opus or Vorbis)", "audio/opus": "Opus",
    "audio/webm": "WebM", "audio/aac": "AAC", "audio/aacp": "AAC", "audio/mp4": "AAC", "audio/flac": "FLAC",
    "audio/x-flac": "FLAC",
}  # fmt: skip
_BEGINNINGS = {b"ID3": "MP3", b"OggS": "Ogg (Opus or Vorbis)", b"fLaC": "FLAC", b"\x1aE\xdf\xa3": "WebM"}


def check_readable(data: bytes, content_type: str) -> None:
    """Raise ConversationError for the beginning of sound that is compressed: as plain samples it would be noise."""
    stated = _TYPES.get(content_type.partition(";")[0].strip().lower())
    found = next((name for bytes_, name in _BEGINNINGS.items() if data.startswith(bytes_)), None)
    if data.startswith(b"RIFF") or not (found or stated):
        return
    raise ConversationError(
        f"the server sent {found or stated}; only WAV and 16-bit samples can be read piece by piece: use "
        "`response_format: wav` or `pcm`, if the server knows it",
        kind=GARBAGE,
    )


class SoundReader:
    """Sound of an answer as its bytes come: a WAV file, whose header may not know its length, or plain samples."""

    def __init__(self, rate: int | None) -> None:
        """With a rate the bytes are 16-bit mono samples, without one a WAV file."""
        self._rate, self._channels, self._width = rate or 0, 1, 2
        self._rest = b""
        self._left: int | None = None
        self.in_header = rate is None

    def read(self, data: bytes) -> Speech | None:
        """The samples that are complete; None where there are none, as of a header."""
        self._rest += data
        if self.in_header and not self._header():
            return None
        frame = self._width * self._channels
        ready = len(self._rest) if self._left is None else min(len(self._rest), self._left)
        ready -= ready % frame
        made, self._rest = self._rest[:ready], self._rest[ready:]
        self._left = None if self._left is None else self._left - ready
        return speech_of(made, self._rate, self._channels, self._width) if made else None

    def _header(self) -> bool:
        """Read chunks up to the samples; whether all of them were there."""
        if len(self._rest) < 12:
            return False
        if self._rest[:4] != b"RIFF" or self._rest[8:12] != b"WAVE":
            raise ConversationError(f"the sound is not a WAV file: it begins with {self._rest[:12]!r}", kind=GARBAGE)
        at = 12
        while at + 8 <= len(self._rest):
            name, size = struct.unpack_from("<4sI", self._rest, at)
            if name == b"data":
                # servers that stream do not know the size, and write 0 or the largest number
                self._left = size if 0 < size < _UNKNOWN_SIZE else None
                self._rest, self.in_header = self._rest[at + 8 :], False
                return True
            if at + 8 + size > len(self._rest):
                return False
            if name == b"fmt ":
                self._format(self._rest[at + 8 : at + 8 + size])
            at += 8 + size + size % 2
        return False

    def _format(self, chunk: bytes) -> None:
        if len(chunk) < 16:
            raise ConversationError("the header of the WAV file is damaged", kind=GARBAGE)
        tag, self._channels, self._rate, _, _, bits = struct.unpack_from("<HHIIHH", chunk)
        if tag == _EXTENSIBLE and len(chunk) >= 26:
            (tag,) = struct.unpack_from("<H", chunk, 24)
        if (tag, bits) not in ((_INTEGERS, 16), (_FLOATS, 32)) or not self._channels or not self._rate:
            raise ConversationError(
                f"the WAV file has {bits}-bit samples of format {tag} in {self._channels} channels at {self._rate} Hz; "
                "16-bit integers and 32-bit floats are read",
                kind=GARBAGE,
            )
        self._width = bits // 8


class Resampler:
    """Samples at 16 kHz to another rate, chunk by chunk, without a seam between chunks."""

    def __init__(self, rate: int) -> None:
        self._stream: Any = None
        if rate != RATE:
            import soxr

            self._stream = soxr.ResampleStream(RATE, rate, 1, dtype="float32")

    def __call__(self, samples: Any) -> Any:
        """What is ready of the samples so far."""
        return samples if self._stream is None else self._stream.resample_chunk(samples)

    def rest(self) -> Any:
        """What is left at the end."""
        import numpy as np

        empty: Any = np.zeros(0, dtype="float32")
        return empty if self._stream is None else self._stream.resample_chunk(empty, last=True)
