"""Live rounds on the virtual clock with the simulated recogniser: what tests of live metrics start from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import numpy as np

from speechmeter.core.live import Anchors, Exchange, Live
from speechmeter.core.protocol import LiveProtocol
from speechmeter.engine.live.clock import run
from speechmeter.engine.live.conversation import Manner
from speechmeter.engine.live.round import Round, Script
from speechmeter.engine.live.utterance import RATE, Utterance
from speechmeter.subjects import known_conversation, known_live

PROTOCOL = LiveProtocol(
    turn_end="system", turn_delay_s=0.0, turn_vad="", silence_s=1.0, quiet_s=3.0, timeout_s=30.0, phase="aligned",
    turns=None, duration_s=None, warmup_turns=0,
)  # fmt: skip


def utterance(
    name: str = "u1",
    text: str = "one two three four",
    *,
    audio_s: float = 3.0,
    start_s: float = 0.5,
    end_s: float = 2.5,
) -> Utterance:
    """Noise of its own with anchors; the words are spread evenly over the speech."""
    draw = np.random.default_rng(crc32(name.encode()))
    anchors = Anchors(speech_start_s=start_s, speech_end_s=end_s, source="made")
    words, _ = known_live.words_of(anchors, text, audio_s)
    return Utterance(
        name=name,
        pcm=draw.standard_normal(round(audio_s * RATE), dtype="float32"),
        anchors=replace(anchors, words=words),
        reference=text,
    )


@dataclass(frozen=True, kw_only=True)
class Held:
    """A round that was held: its exchanges, and the round with what the client did."""

    exchanges: Sequence[Exchange]
    round: Round


def known(utterances: Sequence[Utterance], *, virtual: bool = True, **script: Any) -> Live:
    """The simulated recogniser that knows these utterances."""
    spoken = [
        known_conversation.Spoken(
            name=one.name, pcm=one.pcm, words=one.anchors.words, speech_end_s=one.anchors.speech_end_s or one.audio_s
        )
        for one in utterances
    ]
    return known_live.known_live(known_conversation.Script(**script), spoken, virtual=virtual)


def held(
    live: Live,
    utterances: Sequence[Utterance],
    *,
    pace: Any = "realtime",
    chunk_s: float = 0.1,
    streams: int = 1,
    seed: str = "0",
    rate: float | None = None,
    take: Callable[[Exchange], None] | None = None,
    **protocol: Any,
) -> Held:
    """A whole round, on the virtual clock where the system allows it."""
    exchanges: list[Exchange] = []
    made = replace(PROTOCOL, **protocol)
    script, _ = Script.of_all(utterances, warmup_turns=made.warmup_turns, streams=streams, seed=seed)
    script = script.arriving(made, rate)
    manner = Manner(live=live, protocol=made, pace=pace, chunk_s=chunk_s)

    async def work(clock: Any) -> Round:
        here = Round(script=script, manner=manner, clock=clock, take=take or exchanges.append)
        await here.warm()
        await here.hold()
        return here

    return Held(round=run(work, virtual=live.virtual), exchanges=exchanges)
