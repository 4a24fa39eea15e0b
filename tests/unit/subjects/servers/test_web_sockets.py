"""Live protocols over WebSockets: what goes up, what comes down, and every way to fail."""

import asyncio
import base64
import json
import struct
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from live_servers import SAID, talk, tcp, texts, web_socket

from speechmeter.core.errors import SubjectError
from speechmeter.core.types import Spec
from speechmeter.subjects.servers.declared import Condition, WebSocketSubject, at
from speechmeter.subjects.servers.deepgram import DeepgramSubject
from speechmeter.subjects.servers.realtime import RealtimeSubject
from speechmeter.subjects.servers.sherpa import SherpaServerSubject
from speechmeter.subjects.servers.vosk import VoskServerSubject

pytest.importorskip("websockets")
PCM16 = (SAID.pcm.clip(-1, 1) * 32767).astype("<i2").tobytes()


class Case:
    """As much of a case as a check asks for."""

    def __init__(self, source, **options):
        self.subject, self.live = Spec(plugin="x", name="x", source=source, options=options), None


async def send(connection, *messages):
    for message in messages:
        await connection.send(json.dumps(message))


# Vosk -----------------------------------------------------------------------------------------------------------


def test_vosk():
    heard = []

    async def serve(connection):
        async for message in connection:
            heard.append(message)
            if isinstance(message, bytes):
                number = sum(isinstance(one, bytes) for one in heard)
                word = {"word": "one", "start": 0.1, "end": 0.2, "conf": 1.0}
                said = [{"partial": "one"}, {"text": "one", "result": [word]}, {"partial": ""}]
                await send(connection, said[number - 1])
            elif "eof" in message:
                await send(connection, {"text": "two"})
                await asyncio.sleep(20)  # a server that does not close: the last answer is known by its number

    with web_socket(serve) as url:
        found = talk(VoskServerSubject(), url)
    assert json.loads(heard[0]) == {"config": {"sample_rate": 16000, "words": True}}
    assert b"".join(heard[1:4]) == PCM16
    assert json.loads(heard[4]) == {"eof": 1}
    assert texts(found) == [("partial", "one", 0), ("final", "one", 0), ("final", "two", 1)]
    assert (found.of_kind("final")[0].start_s, found.of_kind("final")[0].end_s) == (0.1, 0.2)
    assert len(found.of_kind("endpoint")) == 1
    assert found.error == "" and found.ended_s < 10


# sherpa-onnx ----------------------------------------------------------------------------------------------------


def test_sherpa_offline_gets_rate_length_and_samples():
    heard = []

    async def serve(connection):
        while sum(map(len, heard)) < 8 + 4 * len(SAID.pcm):
            heard.append(await connection.recv())
        await send(connection, {"lang": "", "text": " One two", "timestamps": []})
        await connection.wait_closed()

    with web_socket(serve) as url:
        found = talk(SherpaServerSubject(), url)
    data = b"".join(heard)
    assert struct.unpack("<ii", data[:8]) == (16000, 4 * len(SAID.pcm))
    assert np.array_equal(np.frombuffer(data[8:], "<f4"), SAID.pcm)
    assert texts(found) == [("final", "One two", 0)] and found.error == ""


def test_sherpa_online_streams_segments_until_it_is_done():
    async def serve(connection):
        async for message in connection:
            if message == "Done":
                await send(connection, {"text": "two", "segment": 1, "is_final": False})
                await connection.send("Done!")
                return
            await send(connection, {"text": "one", "segment": 0, "is_final": False})
            await send(connection, {"text": "one", "segment": 0, "is_final": True})

    one_chunk = type(SAID)(name="x", pcm=SAID.pcm[:1600])
    with web_socket(serve) as url:
        found = talk(SherpaServerSubject(), url, said=one_chunk, mode="online")
    assert texts(found) == [("partial", "one", 0), ("final", "one", 0), ("partial", "two", 1), ("final", "two", 1)]


# Deepgram -------------------------------------------------------------------------------------------------------


def results(text, *, start=0.0, duration=0.1, **more):
    return {"type": "Results", "start": start, "duration": duration, "is_final": False, "speech_final": False,
            "channel": {"alternatives": [{"transcript": text, "confidence": 1.0, "words": []}]}, **more}  # fmt: skip


def test_deepgram():
    heard, asked = [], []

    async def serve(connection):
        asked.append(connection.request)
        await send(connection, {"type": "Metadata", "request_id": "x"}, {"type": "SpeechStarted", "timestamp": 0.0})
        async for message in connection:
            heard.append(message)
            if len(heard) == 1:
                await send(connection, results(""), results("on"), results("one", is_final=True, speech_final=True))
                await send(connection, {"type": "UtteranceEnd", "last_word_end": 0.1})
            elif isinstance(message, str):
                await send(connection, results("two", start=0.1, is_final=True, from_finalize=True))
                await send(connection, {"type": "Metadata", "duration": 0.3})
                return

    with web_socket(serve) as url:
        found = talk(
            DeepgramSubject(), f"{url}/v1/listen", language="en", query={"endpointing": 300, "punctuate": True},
            key="k3y",
        )  # fmt: skip
    query = {name: values[0] for name, values in parse_qs(urlsplit(asked[0].path).query).items()}
    assert query == {"encoding": "linear16", "sample_rate": "16000", "channels": "1", "interim_results": "true",
                     "language": "en", "endpointing": "300", "punctuate": "true"}  # fmt: skip
    assert asked[0].headers["Authorization"] == "Token k3y"
    assert b"".join(heard[:3]) == PCM16 and json.loads(heard[3]) == {"type": "CloseStream"}
    assert texts(found) == [("partial", "on", 0), ("final", "one", 0), ("final", "two", 1)]
    assert [event.end_s for event in found.of_kind("endpoint")] == [0.1]
    assert [event.end_s for event in found.of_kind("final")] == pytest.approx([0.1, 0.2])
    assert found.error == ""


# /v1/realtime ---------------------------------------------------------------------------------------------------


def test_realtime_of_openai():
    heard = []

    async def serve(connection):
        await send(connection, {"type": "session.created", "session": {}})
        item, content = "conversation.item.input_audio_transcription.", {"item_id": "i1", "content_index": 0}
        async for message in connection:
            heard.append(json.loads(message))
            if heard[-1]["type"] == "session.update":
                await send(connection, {"type": "session.updated", "session": {}})
            elif heard[-1]["type"] == "input_audio_buffer.commit":
                await send(
                    connection,
                    {"type": "input_audio_buffer.committed", "item_id": "i1", "previous_item_id": None},
                    {"type": "conversation.item.added", "item": {"id": "i1"}},
                    {"type": item + "delta", **content, "delta": "one"},
                    {"type": item + "delta", **content, "delta": " two"},
                    {"type": item + "completed", **content, "transcript": "one two", "usage": {}},
                )

    with web_socket(serve) as url:
        found = talk(RealtimeSubject(), f"{url}/v1/realtime", model="m", language="en", prompt="numbers")
    assert heard[0]["session"] == {
        "type": "transcription",
        "audio": {"input": {"format": {"type": "audio/pcm", "rate": 24000}, "turn_detection": None,
                            "transcription": {"model": "m", "language": "en", "prompt": "numbers"}}},
    }  # fmt: skip
    assert {one["type"] for one in heard[1:-1]} == {"input_audio_buffer.append"}
    sent = b"".join(base64.b64decode(one["audio"]) for one in heard[1:-1])
    assert len(sent) / 2 == pytest.approx(0.3 * 24000, abs=2)
    assert texts(found) == [("partial", "one", 0), ("partial", "one two", 0), ("final", "one two", 0)]
    assert found.error == ""


def test_realtime_with_turns_of_the_server_waits_for_quiet_instead_of_committing():
    heard = []

    async def serve(connection):
        await send(connection, {"type": "session.created"}, {"type": "session.updated"})
        async for message in connection:
            heard.append(json.loads(message)["type"])
            if len(heard) == 4:
                name = "conversation.item.input_audio_transcription.completed"
                await send(connection, {"type": "input_audio_buffer.speech_stopped", "audio_end_ms": 1, "item_id": "a"})
                await send(connection, {"type": name, "item_id": "a", "transcript": "one"})

    with web_socket(serve) as url:
        found = talk(RealtimeSubject(), url, turns_by="server_vad", protocol={"quiet_s": 0.2})
    assert "input_audio_buffer.commit" not in heard
    assert texts(found) == [("final", "one", 0)] and len(found.of_kind("endpoint")) == 1
    assert found.error == "" and found.finish_s is None


def test_realtime_of_vllm():
    heard = []

    async def serve(connection):
        await send(connection, {"type": "session.created", "id": "x", "created": 1})
        async for message in connection:
            heard.append(json.loads(message))
            if heard[-1] == {"type": "input_audio_buffer.commit", "final": True}:
                await send(connection, {"type": "transcription.delta", "delta": " one"})
                await send(connection, {"type": "transcription.delta", "delta": " two"})
                await send(connection, {"type": "transcription.done", "text": " one two", "usage": {}})

    subject = RealtimeSubject()
    with web_socket(serve) as url:
        found = talk(subject, url, dialect="vllm", model="m")
    assert heard[:2] == [
        {"type": "session.update", "model": "m"},
        {"type": "input_audio_buffer.commit", "final": False},
    ]
    sent = b"".join(base64.b64decode(one["audio"]) for one in heard[2:-1])
    assert sent == PCM16
    assert texts(found) == [("partial", "one", 0), ("partial", "one two", 0), ("final", "one two", 0)]
    with pytest.raises(SubjectError, match="needs the name of the model"):
        subject.check(Case("ws://h:1", dialect="vllm"))
    with pytest.raises(SubjectError, match="has no `language`"):
        subject.check(Case("ws://h:1", dialect="vllm", model="m", language="en"))


@pytest.mark.parametrize("dialect", ["openai", "vllm"])
def test_an_error_before_the_session_is_that_of_the_server(dialect):
    async def serve(connection):
        await send(connection, {"type": "error", "error": {"message": "model_not_validated"}})

    with web_socket(serve) as url:
        found = talk(RealtimeSubject(), url, dialect=dialect, model="m")
    assert found.error_kind == "system" and "model_not_validated" in found.error


# A protocol of the plan -----------------------------------------------------------------------------------------


def test_a_declared_protocol():
    heard = []

    async def serve(connection):
        async for message in connection:
            heard.append(message)
            data = json.loads(message)
            if data.get("do") == "stop":
                said = {"kind": "result", "out": {"best": [{"words": "two"}]}, "last": True}
                await send(connection, said)
            elif "pcm" in data and len(heard) == 3:
                await send(connection, {"kind": "guess", "out": {"best": [{"words": "on"}]}, "upto": 0.1})
                await send(connection, {"kind": "result", "out": {"best": [{"words": "one"}]}, "pause": True})

    with web_socket(serve) as url:
        found = talk(
            WebSocketSubject(), url, hello=[{"do": "start", "hz": "{rate}"}, '{"rate": {rate}}'],
            audio={"pcm": "{audio}"}, encoding="f32le", finish={"do": "stop"}, text="out.best.0.words",
            final="kind=result", endpoint="pause", end="last=true", end_s="upto", rate=16000,
        )  # fmt: skip
    assert [json.loads(one) for one in heard[:2]] == [{"do": "start", "hz": 16000}, {"rate": 16000}]
    sent = b"".join(base64.b64decode(json.loads(one)["pcm"]) for one in heard[2:-1])
    assert np.array_equal(np.frombuffer(sent, "<f4"), SAID.pcm)
    assert texts(found) == [("partial", "on", 0), ("final", "one", 0), ("final", "two", 1)]
    assert found.of_kind("partial")[0].end_s == 0.1
    assert len(found.of_kind("endpoint")) == 1 and found.error == ""


def test_a_declared_protocol_can_be_that_of_vosk():
    async def serve(connection):
        async for message in connection:
            eof = not isinstance(message, bytes) and "eof" in message
            if eof:
                await send(connection, {"text": "one two"})
                return
            if isinstance(message, bytes):
                await send(connection, {"partial": "one"})

    with web_socket(serve) as url:
        found = talk(WebSocketSubject(), url, finish={"eof": 1}, partial="partial")
    assert texts(found) == [("partial", "one", 0), ("final", "one two", 0)]


def test_paths_and_conditions():
    data = {"a": [{"b": "x"}], "done": True, "n": 0}
    assert at(data, "a.0.b") == at(data, "a.-1.b") == "x"
    assert at(data, "a.1.b") is at(data, "a.b") is at(data, "z.0") is None
    assert (
        Condition.of("done").holds(data) and Condition.of("done=true").holds(data) and Condition.of("n=0").holds(data)
    )
    assert not Condition.of("n").holds(data) and not Condition.of("done=false").holds(data)
    assert Condition.of(None) is Condition.of("") is None


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"audio": {"x": "y"}}, "neither `binary` nor"),
        ({"headers": {"Authorization": "secret"}}, "cannot be set here; use the option `key`"),
        ({"headers": {"x-retries": 3}}, "takes a text, not 3"),
    ],
)
def test_a_declared_protocol_that_cannot_be_is_refused(options, says):
    with pytest.raises(SubjectError, match=says):
        WebSocketSubject().check(Case("ws://h:1", **options))


# What goes wrong ------------------------------------------------------------------------------------------------

SUBJECTS = [VoskServerSubject(), SherpaServerSubject(), DeepgramSubject(), RealtimeSubject(), WebSocketSubject()]
each_subject = pytest.mark.parametrize("subject", SUBJECTS, ids=lambda one: type(one).__name__)


@each_subject
@pytest.mark.parametrize(("status", "kind"), [("401 Unauthorized", "http-4xx"), ("503 Unavailable", "http-5xx")])
def test_a_handshake_that_is_refused(subject, status, kind):
    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status}\r\ncontent-length: 9\r\nconnection: close\r\n\r\nbad k3y..".encode())
        await writer.drain()

    with tcp(answer) as port:
        found = talk(subject, f"ws://127.0.0.1:{port}", key="k3y")
    assert found.error_kind == kind and "k3y" not in found.error, found.error


@each_subject
def test_garbage_instead_of_a_handshake_and_instead_of_messages(subject):
    async def rubbish(reader, writer):
        writer.write(b"\x00\x01\x02 rubbish\r\n\r\n")
        await writer.drain()

    async def noise(connection):
        await connection.send(b"\x00\xff not JSON")
        await connection.wait_closed()

    with tcp(rubbish) as port:
        assert talk(subject, f"ws://127.0.0.1:{port}").error_kind == "garbage"
    with web_socket(noise) as url:
        assert talk(subject, url, finish="end").error_kind == "garbage"


@each_subject
def test_a_connection_that_is_refused_cut_or_closed_with_a_code(subject):
    async def cut(connection):
        connection.transport.abort()

    async def failing(connection):
        await connection.close(1011, "no slot")

    with web_socket(cut) as url:
        assert talk(subject, url, said=LONG, pace="realtime").error_kind == "connection"
    assert talk(subject, url).error_kind == "refused"
    with web_socket(failing) as url:
        found = talk(subject, url, said=LONG, pace="realtime")
    assert found.error_kind == "connection" and "1011" in found.error and "no slot" in found.error


LONG = type(SAID)(name="long", pcm=np.concatenate([SAID.pcm, SAID.pcm]))


@each_subject
def test_a_server_that_says_nothing_is_a_timeout(subject):
    async def silent(reader, writer):
        await asyncio.sleep(20)

    async def mute(connection):
        await asyncio.sleep(20)

    async def slow(reader, writer):
        for byte in b"HTTP/1.1 101 Switching Protocols\r\n" + b"x-more: 1\r\n" * 100:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.02)

    for connection in (silent, slow):
        with tcp(connection) as port:
            found = talk(subject, f"ws://127.0.0.1:{port}", protocol={"timeout_s": 0.5})
        assert found.error_kind == "timeout" and "opening the conversation took too long" in found.error
        assert found.ended_s < 8
    with web_socket(mute) as url:
        found = talk(subject, url, protocol={"timeout_s": 0.5}, finish="end")
    assert found.error_kind == "timeout" and found.ended_s < 8


def test_an_orderly_close_before_the_end_of_the_audio_is_a_lost_connection():
    async def hasty(connection):
        await connection.close(1000)

    with web_socket(hasty) as url:
        found = talk(VoskServerSubject(), url, said=LONG, pace="realtime")
    assert found.error_kind == "connection" and "before the end of the audio" in found.error


@pytest.mark.parametrize("address", ["", "ws://", "http://h:1", "h:1", "ws://h:99999", "ws://[::1"])
def test_addresses_that_cannot_be_used(address):
    with pytest.raises(SubjectError, match="not an address of a server"):
        VoskServerSubject().check(Case(address))


def test_a_key_comes_from_the_environment_alone(monkeypatch):
    with pytest.raises(SubjectError, match="use the option `key`"):
        VoskServerSubject().check(Case("ws://me:secret@h:1"))
    monkeypatch.delenv("SOME_KEY", raising=False)
    with pytest.raises(SubjectError, match="SOME_KEY is not set"):
        VoskServerSubject().check(Case("ws://h:1", key="SOME_KEY"))
    monkeypatch.setenv("SOME_KEY", "x")
    VoskServerSubject().check(Case("ws://h:1", key="SOME_KEY"))
