"""OpenAI's transcriptions: what is sent byte by byte, three event-stream dialects, and every way to fail."""

import asyncio
import io
import json

import pytest
import soundfile
from live_rounds import held
from live_servers import SAID, answered, http, talk, tcp, texts

from speechmeter.subjects.servers.http import url_of
from speechmeter.subjects.servers.secrets import Secret
from speechmeter.subjects.servers.subject import Request
from speechmeter.subjects.servers.transcriptions import TranscriptionsSubject

pytest.importorskip("httpx_sse")
SUBJECT = TranscriptionsSubject()
PATH = "/audio/transcriptions"


def fields_in(head, body):
    """The parts of a multipart form by name."""
    boundary = head.lower().split("boundary=")[1].split("\r\n")[0].strip()
    at = head.lower().index("boundary=") + len("boundary=")
    found = {}
    for part in body.split(b"--" + head[at : at + len(boundary)].encode())[1:-1]:
        described, _, value = part.partition(b"\r\n\r\n")
        found[described.split(b'name="')[1].split(b'"')[0].decode()] = value[:-2]
    return found


def replying(body, **parts):
    asked = []

    async def answer(head, sent, writer):
        asked.append((head, sent))
        writer.write(answered(body, **parts))

    return answer, asked


def test_the_whole_request_is_what_the_plan_says_and_no_more():
    answer, asked = replying(b'{"text": " one two ", "usage": {"type": "duration", "seconds": 1}}')
    with http(answer) as url:
        plain = talk(SUBJECT, url)
        full = talk(
            SUBJECT, url, model="tiny", language="en", prompt="numbers", temperature=0.0, stream=True, key="k3y",
            response_format="verbose_json", fields={"max_completion_tokens": 8, "vad": True},
        )  # fmt: skip
    assert texts(plain) == [("final", "one two", 0)] and plain.error == ""
    (head, body), (full_head, full_body) = asked
    assert head.startswith("POST /v1/audio/transcriptions HTTP/1.1\r\n") and "authorization" not in head.lower()
    assert set(fields_in(head, body)) == {"file"}
    sound, rate = soundfile.read(io.BytesIO(fields_in(head, body)["file"]), dtype="float32")
    assert rate == 16_000 and sound == pytest.approx(SAID.pcm.clip(-1, 1), abs=2e-4)
    fields = {name: value.decode() for name, value in fields_in(full_head, full_body).items() if name != "file"}
    assert fields == {
        "model": "tiny", "language": "en", "prompt": "numbers", "temperature": "0.0", "stream": "true",
        "response_format": "verbose_json", "max_completion_tokens": "8", "vad": "true",
    }  # fmt: skip
    assert "authorization: bearer k3y" in full_head.lower()
    assert texts(full) == [("final", "one two", 0)]


def test_a_file_is_sent_without_the_silence_that_follows_it_in_real_time():
    answer, _ = replying(b'{"text": "x"}')
    with http(answer) as url:
        fast = talk(SUBJECT, url, protocol={"silence_s": 0.5})
        paced = talk(SUBJECT, url, pace="realtime", protocol={"silence_s": 0.2})
    assert fast.sends[-1].to_s == 0.3
    assert paced.sends[-1].to_s == 0.5


def sse(*lines, end=b""):
    return b"".join(b"data: " + line + b"\n\n" for line in lines) + end


def chunk(text, reason=None):
    choice = {"delta": {"content": text}, **({"finish_reason": reason} if reason else {})}
    return json.dumps({"id": "transcribe-1", "object": "transcription.chunk", "choices": [choice]}).encode()


OPENAI = sse(
    b'{"type":"transcript.text.delta","delta":"one"}',
    b'{"type":"transcript.text.segment","id":"1","start":0,"end":1,"text":"one","speaker":"A"}',
    b'{"type":"transcript.text.delta","delta":" two"}',
    b'{"type":"transcript.text.done","text":"one two","usage":{"type":"tokens"}}',
)
VLLM = sse(chunk(""), chunk(" one"), chunk(" two", "stop"), b'{"object":"transcription.chunk","choices":[],"usage":{}}',
           b"[DONE]")  # fmt: skip
BARE = sse(b" one", b" two")


@pytest.mark.parametrize("body", [OPENAI, VLLM, BARE], ids=["openai", "vllm", "transformers"])
def test_three_dialects_of_event_streams_give_the_same_texts(body):
    answer, _ = replying(body, kind="text/event-stream; charset=utf-8")
    with http(answer) as url:
        found = talk(SUBJECT, url, stream=True)
    assert found.error == ""
    assert [text for _, text, _ in texts(found)] == ["one", "one two", "one two"]
    assert texts(found)[-1][0] == "final"


def test_bare_text_that_looks_like_a_number_is_text():
    answer, _ = replying(sse(b"12", b" 0"), kind="text/event-stream")
    with http(answer) as url:
        assert texts(talk(SUBJECT, url, stream=True))[-1] == ("final", "12 0", 0)


def test_each_piece_has_the_moment_at_which_it_arrived():
    async def answer(head, body, writer):
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        for text in (b"one", b" two"):
            writer.write(sse(text))
            await writer.drain()
            await asyncio.sleep(0.3)

    with http(answer) as url:
        found = talk(SUBJECT, url, stream=True)
    first, second = (event.moment_s for event in found.of_kind("partial"))
    assert second - first > 0.15
    assert found.of_kind("final")[0].moment_s - second > 0.15


def test_an_event_without_end_is_garbage_and_not_kept():
    async def endless(head, body, writer):
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: ")
        for _ in range(400):
            writer.write(b"x" * 65536)
            await writer.drain()

    with http(endless) as url:
        found = talk(SUBJECT, url, stream=True)
    assert found.error_kind == "garbage" and "longer than 16 MiB" in found.error
    assert [event.kind for event in found.events] == ["opened"]


def test_answers_as_plain_text():
    for body in (b"one two\n", b'"one two"'):
        answer, _ = replying(body, kind="text/plain")
        with http(answer) as url:
            assert texts(talk(SUBJECT, url, response_format="text")) == [("final", "one two", 0)]


@pytest.mark.parametrize(
    ("body", "parts", "kind", "says"),
    [
        (b'{"detail": "no such model"}', {"status": "404 Not Found"}, "http-4xx", "HTTP status 404"),
        (b"busy", {"status": "503 Service Unavailable"}, "http-5xx", "HTTP status 503: 'busy'"),
        (b"", {"status": "302 Found"}, "garbage", "HTTP status 302"),
        (b"<html>hello</html>", {}, "garbage", "not a JSON object"),
        (b'{"txet": "x"}', {}, "garbage", "no text"),
        (b'{"text": 7}', {}, "garbage", "is not a string"),
        (b"\xff\xfe\x00", {}, "garbage", "not a JSON object"),
        (b'{"error": {"message": "out of memory"}}', {}, "system", "out of memory"),
        (sse(b'{"error": {"message": "too long"}}'), {"kind": "text/event-stream"}, "system", "too long"),
        (sse(chunk(" one")), {"kind": "text/event-stream"}, "connection", "before the answer was complete"),
    ],
)
def test_answers_that_are_no_transcription_become_errors_of_a_kind(body, parts, kind, says):
    answer, _ = replying(body, **parts)
    with http(answer) as url:
        found = talk(SUBJECT, url)
    assert (found.error_kind, says in found.error) == (kind, True), found.error


def test_nobody_listening_is_refused():
    async def closed(reader, writer):
        return None

    with tcp(closed) as port:
        pass
    found = talk(SUBJECT, f"http://127.0.0.1:{port}/v1")
    assert found.error_kind == "refused" and "cannot connect" in found.error


@pytest.mark.parametrize("begun", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"])
def test_a_server_that_hangs_is_a_timeout_and_ends(begun):
    async def answer(head, body, writer):
        writer.write(begun)
        await writer.drain()
        await asyncio.sleep(20)

    with http(answer) as url:
        found = talk(SUBJECT, url, protocol={"timeout_s": 0.5})
    assert found.error_kind == "timeout"
    assert found.ended_s < 5


@pytest.mark.parametrize(
    ("head", "says"),
    [(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n" + b"x-more: 1\r\n" * 100, "did not answer at all"),
     (b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n" + b" " * 999, "did not finish")],
    ids=["headers", "body"],
)  # fmt: skip
def test_an_answer_that_comes_a_byte_at_a_time_is_a_timeout_that_says_how_far_it_came(head, says):
    async def answer(sent, body, writer):
        first = 40 if says == "did not finish" else 0  # its headers
        writer.write(head[:first])
        for place in range(first, len(head)):
            writer.write(head[place : place + 1])
            await writer.drain()
            await asyncio.sleep(0.02)

    with http(answer) as url:
        found = talk(SUBJECT, url, protocol={"timeout_s": 0.5})
    assert (found.error_kind, says in found.error) == ("timeout", True), found.error
    assert found.ended_s < 5


@pytest.mark.parametrize(
    ("bytes_", "kind"),
    [
        (b"", "connection"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{", "connection"),
        (b"\x00\x01 this is not HTTP\r\n\r\n", "garbage"),
    ],
)
def test_a_connection_that_is_cut_or_speaks_something_else(bytes_, kind):
    async def answer(head, body, writer):
        writer.write(bytes_)

    with http(answer) as url:
        assert talk(SUBJECT, url).error_kind == kind


def test_a_server_that_dies_fails_those_after_it_and_nothing_hangs():
    served = []

    async def answer(head, body, writer):
        served.append(1)
        writer.write(answered(b'{"text": "x"}'))

    given = {option.name: option.default for option in SUBJECT.options}
    with http(answer) as url:
        live = SUBJECT.live(Request(url=url, secret=Secret(), options=given))
        first = held(live, [SAID], pace="fast", silence_s=0.0).exchanges
    after = held(live, [SAID], pace="fast", silence_s=0.0, turns=2).exchanges
    assert [one.error_kind for one in (*first, *after)] == ["", "refused", "refused"]
    assert len(served) == 1


def test_a_key_is_masked_in_whatever_the_server_says():
    async def answer(head, body, writer):
        writer.write(answered(b"wrong key: s3cret", status="401 Unauthorized"))

    with http(answer) as url:
        found = talk(SUBJECT, url, key="s3cret")
    assert "s3cret" not in json.dumps(found.to_json()) and "***" in found.error
    assert "s3cret" not in repr(Secret(value="s3cret"))


def test_the_address_is_that_of_the_server_or_of_the_endpoint():
    assert url_of("http://h:1/v1", PATH) == url_of("http://h:1/v1/", PATH) == "http://h:1/v1/audio/transcriptions"
    assert url_of("http://h:1/openai/v1/audio/transcriptions", PATH) == "http://h:1/openai/v1/audio/transcriptions"
