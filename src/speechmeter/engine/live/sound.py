"""The sound of one answer as it comes: what each piece adds, and what an exchange keeps of the whole."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from speechmeter.core.errors import ConversationError
from speechmeter.core.live import FRAME_S, GARBAGE, SILENT_DB, Event, Sound
from speechmeter.core.types import Speech

MOST_S = 3600.0
"""Of sound in one answer: a system that says more is broken."""
_FULL = 0.999
_LOUDEST = 16.0
"""Synthesisers exceed full scale (1) a little; beyond this, floats hold integer samples."""
_LEAST_RATE, _MOST_RATE = 1_000, 384_000


@dataclass(kw_only=True)
class SoundTaken:
    """All sound of one answer so far."""

    parts: list[Any] = field(default_factory=list)
    rate: int = 0
    samples: int = 0

    def take(self, event: Event) -> Event:
        """The event with its span in the sound and without the samples. Raises ConversationError for what is none."""
        if event.sound is None:  # a header
            return replace(event, audio=event.audio or 0, start_s=self._end_s(), end_s=self._end_s())
        samples, start_s = self._checked(event.sound), self._end_s()
        self.parts.append(samples)
        self.samples += len(samples)
        size = len(samples) * 2 if event.audio is None else event.audio
        return replace(event, audio=size, start_s=start_s, end_s=self._end_s(), sound=None)

    def speech(self) -> Speech | None:
        """All samples; None without any."""
        import numpy as np

        return Speech(samples=np.concatenate(self.parts), rate=self.rate) if self.samples else None

    def _end_s(self) -> float:
        return round(self.samples / self.rate, 9) if self.rate else 0.0

    def _checked(self, sound: Speech) -> Any:
        samples = samples_of(sound.samples)
        if not _LEAST_RATE <= sound.rate <= _MOST_RATE:
            raise _garbage(f"the sampling rate of the sound is {sound.rate} Hz; {_LEAST_RATE} to {_MOST_RATE} are read")
        if self.rate and sound.rate != self.rate:
            raise _garbage(f"the sampling rate of the sound changes from {self.rate} to {sound.rate} Hz")
        self.rate = sound.rate
        if self.samples + len(samples) > MOST_S * self.rate:
            raise _garbage(f"the system sent more than {MOST_S:g} s of sound")
        return samples


def samples_of(given: Any) -> Any:
    """A copy as float32 with 1 as full scale: a system may use its buffer again. Integers are scaled by their type.

    Raises ConversationError for what is no row of samples.
    """
    import numpy as np

    samples = np.asarray(given)
    is_integer = samples.dtype in (np.int16, np.int32)
    if samples.dtype.kind != "f" and not is_integer:
        raise _garbage(f"the sound has samples of type {samples.dtype}; give float32 from -1 to 1, or int16")
    if samples.ndim != 1:
        raise _garbage(f"the sound has the shape {samples.shape}; give one row of samples (mono)")
    if is_integer:
        return (samples / (np.iinfo(samples.dtype).max + 1.0)).astype(np.float32)
    found = samples.astype(np.float32)
    if not np.isfinite(found).all():
        raise _garbage("the sound has samples that are not finite (NaN or infinity)")
    if len(found) and (largest := float(np.abs(found).max())) > _LOUDEST:
        raise _garbage(f"the sound has a sample of {largest:.6g}; full scale is 1: divide 16-bit samples by 32768")
    return found


def _garbage(reason: str) -> ConversationError:
    return ConversationError(reason, kind=GARBAGE)


def sound_of(speech: Speech) -> Sound:
    """What an exchange keeps of sound: levels of stretches of 10 ms, the largest sample, and how many are clipped."""
    import numpy as np

    samples = np.asarray(speech.samples, dtype=np.float64)
    loudness = np.abs(samples)
    power = np.square(samples - samples.mean())
    bounds: Any = np.round(np.arange(0, len(samples) / speech.rate, FRAME_S) * speech.rate).astype(int)
    bounds = bounds[bounds < len(samples)]
    means = np.add.reduceat(power, bounds) / np.diff(np.append(bounds, len(samples)))
    levels = 10 * np.log10(np.maximum(means, 10 ** (SILENT_DB / 10)))
    return Sound(
        rate=speech.rate, samples=len(samples), peak=round(float(loudness.max()), 6),
        clipped=int((loudness >= _FULL).sum()), levels_db=tuple(np.round(levels, 2).tolist()),
    )  # fmt: skip
