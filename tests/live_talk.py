"""One conversation with a prepared subject, fed as fast as possible; the events without `closed`."""

import asyncio
from time import perf_counter

CHUNK = 1_600
LIVE = {
    "mode": "live", "turn_end": "system", "turn_delay_s": 0.0, "turn_vad": "", "silence_s": 1.0, "quiet_s": 3.0,
    "timeout_s": 30.0, "phase": "random", "turns": None, "duration_s": None, "warmup_turns": 0,
}  # fmt: skip
AXES = {"pace": "fast", "chunk": 0.1, "streams": 1}
"""Protocol and axes of a live case."""


class Clock:
    """The clock of the machine."""

    def now(self):
        return perf_counter()

    async def sleep_until(self, moment_s):
        await asyncio.sleep(max(0.0, moment_s - perf_counter()))


def heard_live(prepared, samples, chunk=CHUNK):
    async def talk():
        conversation = prepared.live.converse(Clock())
        await conversation.open()
        try:
            for start in range(0, len(samples), chunk):
                await conversation.send(samples[start : start + chunk])
            await conversation.finish()
            return [event async for event in conversation.events() if event.kind != "closed"]
        finally:
            await conversation.close()

    return asyncio.run(asyncio.wait_for(talk(), 120))
