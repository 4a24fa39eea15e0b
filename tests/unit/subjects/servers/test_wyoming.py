"""Wyoming: frames byte by byte, whole and streamed texts, and what can go wrong."""

import asyncio
import json

import pytest
from live_servers import SAID, talk, tcp, texts

from speechmeter.subjects.servers.wyoming import Frame, WyomingSubject

SUBJECT = WyomingSubject()
PCM16 = (SAID.pcm.clip(-1, 1) * 32767).astype("<i2").tobytes()


async def read(reader):
    """A frame, as a server of the protocol reads it; data may stand in the line or behind it."""
    head = json.loads(await reader.readline())
    data = head.get("data") or {}
    if head.get("data_length"):
        data |= json.loads(await reader.readexactly(head["data_length"]))
    return head["type"], data, await reader.readexactly(head.get("payload_length") or 0)


def server(*answers, heard=None):
    async def serve(reader, writer):
        while True:
            frame = await read(reader)
            if heard is not None:
                heard.append(frame)
            if frame[0] == "audio-stop":
                for answer in answers:
                    writer.write(answer)
                    await writer.drain()
                await asyncio.sleep(20 if answers else 0)

    return serve


def url(port):
    return f"tcp://127.0.0.1:{port}"


def test_one_text_after_the_audio():
    heard = []
    # data in the line, as older servers send it
    answer = b'{"type": "transcript", "data": {"text": " one two"}}\n'
    with tcp(server(answer, heard=heard)) as port:
        found = talk(SUBJECT, url(port), language="en", model="tiny")
    layout = {"rate": 16000, "width": 2, "channels": 1}
    assert heard[0] == ("transcribe", {"language": "en", "name": "tiny"}, b"")
    assert heard[1] == ("audio-start", layout, b"")
    assert {(kind, json.dumps(data)) for kind, data, _ in heard[2:-1]} == {("audio-chunk", json.dumps(layout))}
    assert b"".join(payload for *_, payload in heard[2:-1]) == PCM16
    assert heard[-1] == ("audio-stop", {}, b"")
    assert texts(found) == [("final", "one two", 0)] and found.error == ""


def test_a_text_that_is_streamed():
    parts = [Frame(type="transcript-start"), Frame(type="transcript-chunk", data={"text": " one"}),
             Frame(type="transcript-chunk", data={"text": " two"}), Frame(type="transcript", data={"text": "one two"}),
             Frame(type="transcript-stop")]  # fmt: skip
    with tcp(server(*(part.to_bytes() for part in parts))) as port:
        found = talk(SUBJECT, url(port))
    assert texts(found) == [("partial", "one", 0), ("partial", "one two", 0), ("final", "one two", 0)]


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (Frame(type="error", data={"text": "no model", "code": "x"}).to_bytes(), "system", "no model"),
        (b"HTTP/1.1 400 Bad Request\r\n", "garbage", "does not speak Wyoming"),
        (b"[]\n", "garbage", "does not speak Wyoming"),
        (b'{"type": "transcript", "data_length": -1}\n', "garbage", "impossible data_length: -1"),
        (b'{"type": "transcript", "payload_length": 99999999999}\n', "garbage", "payload_length"),
        (b"x" * 200_000, "garbage", "too long"),
        (b'{"type": "transcript", "data": {"text": 7}}\n', "garbage", "is not a string"),
        (b'{"type": "transcript", "data": 7}\n', "garbage", "does not speak Wyoming"),
    ],
)
def test_answers_that_are_no_transcript(answer, kind, says):
    with tcp(server(answer)) as port:
        found = talk(SUBJECT, url(port))
    assert (found.error_kind, says in found.error) == (kind, True), found.error


def test_connections_that_are_refused_cut_or_silent():
    async def cut(reader, writer):
        await reader.readline()
        writer.transport.abort()

    async def torn(reader, writer):
        writer.write(b'{"type": "transcript", "data_length": 50}\n{"te')
        await writer.drain()

    async def mute(reader, writer):
        await asyncio.sleep(20)

    with tcp(cut) as port:
        assert talk(SUBJECT, url(port)).error_kind == "connection"
    assert talk(SUBJECT, url(port)).error_kind == "refused"
    with tcp(torn) as port:
        assert talk(SUBJECT, url(port)).error_kind == "connection"
    with tcp(mute) as port:
        found = talk(SUBJECT, url(port), protocol={"timeout_s": 0.5})
    assert found.error_kind == "timeout" and found.ended_s < 8


def test_an_end_without_a_transcript_is_a_lost_connection():
    async def leaving(reader, writer):
        while (await read(reader))[0] != "audio-stop":
            pass

    with tcp(leaving) as port:
        found = talk(SUBJECT, url(port))
    assert texts(found) == []
    assert found.error_kind == "connection" and "before its answer" in found.error
