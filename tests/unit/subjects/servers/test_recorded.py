"""What real servers answered, recorded and replayed: `tests/recorded`, each from the project's sample recording.

ovos-stt-http-server 0.28.3a1 with PocketSphinx, wyoming-faster-whisper 3.8.1 and WhisperLiveKit 0.2.26 with tiny.en.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from live_servers import SAID, talk, tcp, texts, web_socket

from speechmeter.subjects.servers.deepgram import DeepgramSubject
from speechmeter.subjects.servers.vosk import VoskServerSubject
from speechmeter.subjects.servers.wyoming import Frame, WyomingSubject

pytest.importorskip("websockets")
RECORDED = Path(__file__).parents[3] / "recorded"
FOUR_SECONDS = type(SAID)(name="silence", pcm=np.zeros(64_000, dtype="float32"))
HEARD = "the harbor was quiet when the first fairy came in"


def recorded(name):
    return json.loads((RECORDED / f"{name}.json").read_text())["messages"]


def at_the_end(messages):
    async def serve(connection):
        async for message in connection:
            if isinstance(message, str):
                for one in messages:
                    await connection.send(one)
                return

    return serve


def test_vosk_of_ovos():
    messages = recorded("ovos-vosk")

    async def serve(connection):
        await connection.recv()
        for message in messages:
            await connection.recv()
            await connection.send(message)

    with web_socket(serve) as url:
        found = talk(VoskServerSubject(), url, said=FOUR_SECONDS)
    assert len(messages) == 41  # one for each of 40 chunks, and one for the end
    assert texts(found) == [("final", HEARD, 0)] and found.error == ""
    assert found.of_kind("endpoint") == []


def test_deepgram_of_ovos():
    with web_socket(at_the_end(recorded("ovos-deepgram"))) as url:
        found = talk(DeepgramSubject(), url)
    assert texts(found) == [("final", HEARD, 0)] and found.error == ""


def test_deepgram_of_whisperlivekit():
    with web_socket(at_the_end(recorded("whisperlivekit-deepgram"))) as url:
        found = talk(DeepgramSubject(), url)
    finals = [(text, segment) for kind, text, segment in texts(found) if kind == "final"]
    assert finals == [("The harbor was quite when the first ferry came in.", 0),
                      ("Seven passengers walked down the road.", 1)]  # fmt: skip
    assert texts(found)[0] == ("partial", "The harbor was quite...", 0)
    ends = [event.end_s for event in found.of_kind("final")]
    assert ends == sorted(ends) and 2 < ends[0] < ends[1] < 6
    assert found.error == ""


def test_wyoming_of_faster_whisper():
    (message,) = recorded("wyoming-faster-whisper")

    async def serve(reader, writer):
        while b"audio-stop" not in await reader.readline():
            pass
        writer.write(Frame(type=message["type"], data=message["data"]).to_bytes())
        await writer.drain()

    with tcp(serve) as port:
        found = talk(WyomingSubject(), f"tcp://127.0.0.1:{port}")
    assert texts(found) == [("final", "The harbor was quite when the first ferry came in.", 0)]
