"""Who ends a turn, and when: how much is fed, and the detector of a client that listens for silence itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from speechmeter.core.errors import InputError
from speechmeter.core.live import CLIENT_VADS
from speechmeter.core.protocol import LiveProtocol
from speechmeter.engine.live.utterance import RATE, Utterance

_FRAME = RATE // 100
_SPEECH_RMS = 10 ** (-40 / 20)
_LEAST_SPEECH_FRAMES = 10


class Detector(Protocol):
    """Listens beside the system, and says when the speaker has stopped."""

    def ended(self, pcm: Any) -> bool:
        """Whether the turn ended by the end of this chunk, which follows those before it."""
        ...


class EnergyDetector:
    """Frames of 10 ms count as speech above -40 dBFS; after 100 ms of speech, `stop_s` without any end the turn."""

    def __init__(self, stop_s: float) -> None:
        self._stop_frames = round(stop_s * 100)
        self._rest: Any = None
        self._spoken = 0
        self._silent = 0

    def ended(self, pcm: Any) -> bool:
        """Whether enough silence follows enough speech."""
        import numpy as np

        samples = pcm if self._rest is None else np.concatenate([self._rest, pcm])
        whole = len(samples) // _FRAME * _FRAME
        self._rest = samples[whole:]
        for frame in samples[:whole].reshape(-1, _FRAME):
            if float(np.sqrt(np.mean(np.square(frame)))) > _SPEECH_RMS:
                self._spoken, self._silent = self._spoken + 1, 0
            else:
                self._silent += 1
        return self._spoken >= _LEAST_SPEECH_FRAMES and self._silent >= self._stop_frames


DETECTORS: dict[str, Callable[[float], Detector]] = dict(zip(CLIENT_VADS, (EnergyDetector,), strict=True))
"""Detectors of a client by name, made with the stop time in seconds."""


@dataclass(frozen=True, kw_only=True)
class Turn:
    """How one utterance is fed: at most `fed_s` seconds, fewer where the detector ends the turn before."""

    fed_s: float
    detector: Detector | None = None


def turn_of(utterance: Utterance, protocol: LiveProtocol, *, silence: bool = True) -> Turn:
    """How an utterance is fed. Raises InputError for an oracle that does not know the end of speech."""
    whole_s = utterance.fed_s(protocol.silence_s if silence else 0.0)
    if utterance.text is not None:
        return Turn(fed_s=whole_s)
    if protocol.turn_end == "oracle":
        end_s = utterance.anchors.speech_end_s
        if end_s is None:
            raise InputError(
                f"`turn_end: oracle` needs the true end of speech, and {utterance.name} has none",
                key="data",
                fix="add it with `speechmeter data anchors`, or use `turn_end: system`",
            )
        return Turn(fed_s=min(whole_s, end_s + protocol.turn_delay_s))
    if protocol.turn_end == "client-vad":
        return Turn(fed_s=whole_s, detector=DETECTORS[protocol.turn_vad](protocol.turn_delay_s))
    return Turn(fed_s=whole_s)
