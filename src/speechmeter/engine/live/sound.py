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
        import numpy as np

        samples = np.asarray(sound.samples, dtype=np.float32)
        self.rate = self.rate or sound.rate
        if samples.ndim != 1 or not np.isfinite(samples).all():
            raise ConversationError("the sound must be a one-dimensional array of finite samples", kind=GARBAGE)
        if sound.rate != self.rate or not _LEAST_RATE <= sound.rate <= _MOST_RATE:
            raise ConversationError(f"the sampling rate of the sound is {sound.rate}, not {self.rate}", kind=GARBAGE)
        if self.samples + len(samples) > MOST_S * self.rate:
            raise ConversationError(f"the system sent more than {MOST_S:g} s of sound", kind=GARBAGE)
        return samples


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
