"""Servers that speak: what is sent, sound as a body, as events and as Wyoming frames, and every way to fail."""

import asyncio
import json
from base64 import b64encode
from dataclasses import replace

import numpy as np
import pytest
from conftest import make_case
from live_servers import answered, http, talk, tcp
from live_voices import conditions, texts, values

from speechmeter.analysis.live import measurements
from speechmeter.core import metrics
from speechmeter.core.errors import ConversationError, SubjectError
from speechmeter.core.types import Spec
from speechmeter.subjects.servers.sound import SoundReader, pcm16, wav
from speechmeter.subjects.servers.speech import SpeechSubject
from speechmeter.subjects.servers.wyoming import Frame
from speechmeter.subjects.servers.wyoming_voice import WyomingVoiceSubject

pytest.importorskip("httpx_sse")
SPEECH, WYOMING = SpeechSubject(), WyomingVoiceSubject()
TONE = (0.5 * np.sin(np.arange(4_800) / 20)).astype(np.float32)
PCM = pcm16(TONE)
WAV = wav(PCM, 24_000)
STREAMED = WAV[:40] + b"\xff\xff\xff\xff" + PCM  # a header that does not know the length
SAID = texts("Say this.")[0]


def pieces(*parts, kind="audio/wav", pause_s=0.02):
    """A server that sends its answer part by part, as chunks."""
    asked = []

    async def answer(head, sent, writer):
        asked.append((head, json.loads(sent)))
        writer.write(f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n".encode())
        for part in parts:
            writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
            await writer.drain()
            await asyncio.sleep(pause_s)
        writer.write(b"0\r\n\r\n")

    return answer, asked


def sse(*events):
    return [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events]


def sizes(exchange):
    return [event.audio for event in exchange.events if event.kind == "audio"]


def test_the_request_is_what_the_plan_says_and_no_more():
    answer, asked = pieces(STREAMED)
    with http(answer) as url:
        plain = talk(SPEECH, url, said=SAID)
        talk(SPEECH, url, said=SAID, model="m", voice="v", speed=1.5, fields={"stream": True}, key="k3y")
    assert plain.error == "" and plain.sound.seconds == 0.2
    assert asked[0][0].startswith("POST /v1/audio/speech HTTP/1.1\r\n")
    assert asked[0][1] == {"input": "Say this.", "response_format": "wav"}
    assert asked[1][1] == {
        "input": "Say this.", "response_format": "wav", "model": "m", "voice": "v", "speed": 1.5, "stream": True
    }  # fmt: skip
    assert "authorization: bearer k3y" in asked[1][0].lower()


def test_a_chunked_answer_is_streamed_and_its_header_is_no_sound():
    answer, _ = pieces(STREAMED[:44], STREAMED[44:4845], STREAMED[4845:])
    with http(answer) as url:
        found = talk(SPEECH, url, said=SAID)
    assert sizes(found) == [0, 4800, 4800]  # the odd byte waits for the other half of its sample
    header, first, second = (event for event in found.events if event.kind == "audio")
    assert values(metrics.FIRST_BYTE, [found]) == (first.moment_s,)
    assert values(metrics.SOUND_GAP, [found]) == (second.moment_s - first.moment_s,)
    assert header.moment_s < first.moment_s


def test_an_answer_whose_length_is_stated_came_in_one_piece():
    async def answer(head, sent, writer):
        writer.write(answered(WAV, kind="audio/wav"))

    with http(answer) as url:
        found = talk(SPEECH, url, said=SAID)
    made = {one.metric: one for one in measurements([found], conditions())}
    assert "not streamed" in made[metrics.UNDERRUN_TOTAL.id].unavailable
    assert made[metrics.SOUND_MADE.id].values == (0.2,)


@pytest.mark.parametrize(("format_", "sound"), [("pcm", PCM), ("pcm", STREAMED), ("wav", STREAMED)])
def test_samples_without_a_header_have_the_rate_of_the_plan(format_, sound):
    answer, _ = pieces(sound)
    with http(answer) as url:
        found = talk(SPEECH, url, said=SAID, response_format=format_)
    assert (found.sound.rate, found.sound.samples) == (24_000, 4_800)


def test_sound_in_events():
    deltas = [{"type": "speech.audio.delta", "audio": b64encode(part).decode()} for part in (WAV[:44], WAV[44:])]
    answer, asked = pieces(*sse(*deltas, {"type": "speech.audio.done"}), kind="text/event-stream")
    with http(answer) as url:
        found = talk(SPEECH, url, said=SAID, stream_format="sse")
    assert asked[0][1]["stream_format"] == "sse"
    assert (found.error, sizes(found)) == ("", [0, 9600])


@pytest.mark.parametrize(
    ("parts", "kind", "error"),
    [
        ([b"ID3 this is an mp3 file"], "audio/mpeg", "garbage"),
        (sse({"type": "speech.audio.delta", "audio": "%%"}), "text/event-stream", "garbage"),
        (sse({"type": "error", "error": {"message": "no such voice"}}), "text/event-stream", "system"),
        (sse({"type": "speech.audio.delta", "audio": b64encode(WAV).decode()}), "text/event-stream", "connection"),
    ],
)
def test_answers_that_cannot_be_used(parts, kind, error):
    answer, _ = pieces(*parts, kind=kind)
    with http(answer) as url:
        assert talk(SPEECH, url, said=SAID).error_kind == error


def test_a_server_that_refuses():
    async def answer(head, sent, writer):
        writer.write(answered(b'{"error": "no"}', status="400 Bad Request"))

    with http(answer) as url:
        assert talk(SPEECH, url, said=SAID).error_kind == "http-4xx"


@pytest.mark.parametrize(
    ("sound", "kind", "name"),
    [(b"ID3\x04 and so on", "audio/wav", "MP3"), (b"\xff\xfb\x90\x00" * 8, "audio/mpeg", "MP3"),
     (b"OggS\0" * 8, "application/octet-stream", "Ogg (Opus or Vorbis)"), (b"fLaC" * 4, "audio/pcm", "FLAC")],
)  # fmt: skip
@pytest.mark.parametrize("asked", ["wav", "pcm"])
def test_compressed_sound_is_no_noise_and_says_what_to_ask_for(sound, kind, name, asked):
    answer, _ = pieces(sound, kind=kind)
    with http(answer) as url:
        found = talk(SPEECH, url, said=SAID, response_format=asked)
    assert found.error.startswith(f"the server sent {name}; only WAV") and found.sound is None
    assert found.error_kind == "garbage"


@pytest.mark.parametrize(("key", "says"), [("response_format", "is an option"), ("input", "which is the text")])
def test_further_fields_cannot_change_what_is_asked_for(key, says):
    subject = Spec(
        plugin="openai-speech", name="s", source=SPEECH.example.partition(":")[2], options={"fields": {key: "mp3"}}
    )
    with pytest.raises(SubjectError, match=says):
        SPEECH.check(replace(make_case("s", pace="fast", chunk=0.1, streams=1), subject=subject))


@pytest.mark.parametrize(("tag", "bits", "channels"), [(1, 32, 1), (1, 24, 1), (7, 8, 1), (3, 64, 1), (1, 16, 0)])
def test_samples_that_would_be_misread_are_refused(tag, bits, channels):
    head = bytearray(WAV[:44])
    head[20:24] = tag.to_bytes(2, "little") + channels.to_bytes(2, "little")
    head[34:36] = bits.to_bytes(2, "little")
    with pytest.raises(ConversationError, match="16-bit integers and 32-bit floats are read"):
        SoundReader(None).read(bytes(head) + PCM)


def test_an_extensible_header_names_its_format_behind():
    fmt = WAV[20:36] + (22).to_bytes(2, "little") + bytes(6) + (1).to_bytes(2, "little") + bytes(14)
    extensible = WAV[:16] + len(fmt).to_bytes(4, "little") + b"\xfe\xff" + fmt[2:] + WAV[36:]
    assert np.allclose(SoundReader(None).read(extensible).samples, TONE, atol=1e-4)


@pytest.mark.parametrize("step", [1, 7, 44, 10_000])
def test_a_wav_file_is_read_whatever_its_packets(step):
    reader, made = SoundReader(None), []
    extra = WAV[:12] + b"LIST\x04\x00\x00\x00abcd" + WAV[12:] + b"LIST after the samples"
    for start in range(0, len(extra), step):
        speech = reader.read(extra[start : start + step])
        made += [] if speech is None else list(speech.samples)
    assert np.array(made) == pytest.approx(TONE, abs=1e-4)


def test_channels_become_one():
    stereo = np.repeat(np.frombuffer(PCM, dtype="<i2"), 2).tobytes()
    head = bytearray(wav(stereo, 24_000)[:44])
    head[22], head[32] = 2, 4
    assert SoundReader(None).read(bytes(head) + stereo).samples == pytest.approx(TONE, abs=1e-4)
    with pytest.raises(ConversationError, match="not a WAV file"):
        SoundReader(None).read(b"this is not sound at all")


FORMAT = {"rate": 24_000, "width": 2, "channels": 1}


def wyoming(*answers, after, heard):
    async def serve(reader, writer):
        while line := await reader.readline():
            head = json.loads(line)
            data = json.loads(await reader.readexactly(head["data_length"]) or b"{}")
            heard.append((head["type"], data))
            if head["type"] == after:
                for answer in answers:
                    writer.write(answer.to_bytes())
                    await writer.drain()
                    await asyncio.sleep(0.01)

    return serve


def test_a_wyoming_voice_gets_the_text_and_gives_pieces():
    heard = []
    answers = [Frame(type="audio-start", data=FORMAT), Frame(type="audio-chunk", data=FORMAT, payload=PCM[:4800]),
               Frame(type="audio-chunk", data=FORMAT, payload=PCM[4800:]), Frame(type="audio-stop")]  # fmt: skip
    with tcp(wyoming(*answers, after="synthesize", heard=heard)) as port:
        found = talk(WYOMING, f"tcp://127.0.0.1:{port}", said=SAID, voice="joe")
    assert heard == [("synthesize", {"text": "Say this.", "voice": {"name": "joe"}})]
    assert (found.error, sizes(found)) == ("", [0, 4800, 4800])
    assert found.sound.seconds == 0.2


def test_a_wyoming_voice_that_streams_gets_the_text_as_it_comes():
    heard = []
    answers = [Frame(type="audio-chunk", data=FORMAT, payload=PCM), Frame(type="audio-stop"),
               Frame(type="audio-chunk", data=FORMAT, payload=PCM), Frame(type="audio-stop"),
               Frame(type="synthesize-stopped")]  # fmt: skip
    said = texts("Say this.", text_pace=1000.0)[0]
    with tcp(wyoming(*answers, after="synthesize-stop", heard=heard)) as port:
        found = talk(WYOMING, f"tcp://127.0.0.1:{port}", said=said, stream=True, pace="realtime")
    assert [kind for kind, _ in heard] == [
        "synthesize-start",
        *["synthesize-chunk"] * 3,
        "synthesize",
        "synthesize-stop",
    ]
    assert "".join(data["text"] for kind, data in heard if kind == "synthesize-chunk") == "Say this."
    assert (found.error, found.sound.seconds) == ("", 0.4)


@pytest.mark.parametrize("data", [{}, {**FORMAT, "width": 3}, {**FORMAT, "channels": 7}])
def test_wyoming_sound_that_cannot_be_read(data):
    answers = [Frame(type="audio-chunk", data=data, payload=PCM)]
    with tcp(wyoming(*answers, after="synthesize", heard=[])) as port:
        assert talk(WYOMING, f"tcp://127.0.0.1:{port}", said=SAID).error_kind == "garbage"
