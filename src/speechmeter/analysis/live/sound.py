"""The sound of one answer, read: where speech begins and ends in it, and how it would have been played."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from speechmeter.core.live import FRAME_S, WHOLE, Event, Exchange, Sound

FLOOR_DB, BELOW_DB, LEAST_FRAMES = -60.0, 40.0, 3
"""Speech is above this level and at most so far below the loudest 10 ms, for so many of them one after another."""
_SLACK_S = 1e-9


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A piece of sound: when it came, and its span in the sound."""

    moment_s: float
    from_s: float
    to_s: float


@dataclass(frozen=True, kw_only=True)
class Playback:
    """How sound was played: when it began, and its pauses as (moment, seconds)."""

    begins_s: float
    pauses: tuple[tuple[float, float], ...]
    ends_s: float


def pieces_of(exchange: Exchange) -> list[Piece]:
    """The pieces of sound that have a sample, as they came."""
    return [
        Piece(moment_s=event.moment_s, from_s=event.start_s or 0.0, to_s=event.end_s or 0.0)
        for event in exchange.events if _has_samples(event)
    ]  # fmt: skip


def is_streamed(exchange: Exchange) -> bool:
    """Whether the sound came in several pieces, and not as one file in several packets."""
    sounding = [event for event in exchange.events if _has_samples(event)]
    return len(sounding) > 1 and not any(event.notes.get(WHOLE) for event in sounding)


def speech_span(sound: Sound) -> tuple[float, float] | None:
    """(start, end) of speech in the sound, in seconds; None where nothing is audible."""
    least = max(FLOOR_DB, max(sound.levels_db, default=FLOOR_DB) - BELOW_DB)
    loud = [level > least for level in sound.levels_db]
    starts = [at for at in range(len(loud) - LEAST_FRAMES + 1) if all(loud[at : at + LEAST_FRAMES])]
    if not starts:
        return None
    return round(starts[0] * FRAME_S, 9), min(round((starts[-1] + LEAST_FRAMES) * FRAME_S, 9), sound.seconds)


def speech_level(sound: Sound) -> float | None:
    """The level of all that is above the threshold, in dB; None where nothing is."""
    least = max(FLOOR_DB, max(sound.levels_db, default=FLOOR_DB) - BELOW_DB)
    powers = [10 ** (level / 10) for level in sound.levels_db if level > least]
    return 10 * math.log10(sum(powers) / len(powers)) if powers else None


def first_sound_s(pieces: Sequence[Piece], onset_s: float) -> float:
    """When the onset is heard by who plays from the first sample on."""
    holding = next((one for one in pieces if onset_s < one.to_s - _SLACK_S), pieces[-1])
    return max(holding.moment_s, pieces[0].moment_s + onset_s)


def played(pieces: Sequence[Piece], prebuffer_s: float) -> Playback:
    """Playback that starts when so many seconds of sound have come, or all of it, and resumes at once after a pause."""
    first = next((at for at, one in enumerate(pieces) if one.to_s >= prebuffer_s - _SLACK_S), len(pieces) - 1)
    begins_s = pieces[first].moment_s
    until_s = begins_s + pieces[first].to_s
    pauses = []
    for one in pieces[first + 1 :]:
        if one.moment_s > until_s + _SLACK_S:
            pauses.append((until_s, one.moment_s - until_s))
            until_s = one.moment_s
        until_s += one.to_s - one.from_s
    return Playback(begins_s=begins_s, pauses=tuple(pauses), ends_s=until_s)


def prebuffer_needed_s(pieces: Sequence[Piece]) -> float:
    """By how much playback would have to start later for it to have no pause."""
    return max(one.moment_s - pieces[0].moment_s - one.from_s for one in pieces)


def _has_samples(event: Event) -> bool:
    return event.kind == "audio" and (event.end_s or 0.0) > (event.start_s or 0.0)
