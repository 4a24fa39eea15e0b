"""`/v1/realtime` for transcription, in OpenAI's dialect and in vLLM's: `openai-realtime:ws://127.0.0.1:8000/v1/realtime`.

OpenAI's has items, each with deltas and a completed text, takes 24 kHz, and decodes when a buffer is committed. vLLM's
has one text, takes 16 kHz, and decodes from a first commit on to a final one.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from speechmeter.core.axes import Option
from speechmeter.core.errors import SubjectError
from speechmeter.core.live import Clock, Event, Live
from speechmeter.core.types import Case
from speechmeter.subjects.common import RATE
from speechmeter.subjects.servers.sound import Resampler, pcm16
from speechmeter.subjects.servers.subject import KEY, LANGUAGE, MODEL, PROMPT, Request, ServerSubject
from speechmeter.subjects.servers.web_socket import WebSocketWire
from speechmeter.subjects.servers.wire import Dialect, Message, WireConversation, error_text, mapping_in, text_in

_OPENAI_RATE = 24_000
_NO_TURNS = "none"
_TRANSCRIPTION = "conversation.item.input_audio_transcription."


class RealtimeSubject(ServerSubject):
    """A transcription session for each conversation."""

    summary = "a server with OpenAI's realtime protocol: openai-realtime:ws://127.0.0.1:8000/v1/realtime"
    asked = (
        Option(name="dialect", kind=str, default="openai", choices=("openai", "vllm"), help="protocol variant of the "
            "server"),
        MODEL,
        LANGUAGE,
        PROMPT,
        Option(name="turns_by", kind=str, default=_NO_TURNS, choices=(_NO_TURNS, "server_vad", "semantic_vad"),
               help="what ends a turn: none (the client), or server_vad or semantic_vad (the server; dialect openai "
                   "only)"),
        Option(name="rate", kind=int, minimum=8000,
               help="sampling rate of the audio that is sent (default: 24000 for openai, 16000 for vllm)"),
        KEY,
    )  # fmt: skip
    example = "openai-realtime:ws://127.0.0.1:8000/v1/realtime"

    def check(self, case: Case) -> None:
        """vLLM needs the model's name, and knows no turns."""
        super().check(case)
        options = case.subject.options
        if options.get("dialect") != "vllm":
            return
        if not options.get("model"):
            raise SubjectError("vLLM's realtime dialect needs the name of the model", fix="add `model`")
        for name in ("language", "prompt", "turns_by"):
            if options.get(name) not in (None, _NO_TURNS):
                raise SubjectError(f"vLLM's realtime dialect has no `{name}`", fix=f"remove `{name}`")

    def live(self, request: Request) -> Live:
        """Of a server that ends turns itself, the end of the input is not signalled."""
        vllm, turns = request.options["dialect"] == "vllm", request.options["turns_by"]

        def converse(clock: Clock) -> WireConversation:
            wire = WebSocketWire(request.url, request.secret, request.secret.headers())
            dialect: Dialect = VllmDialect(request) if vllm else OpenAIDialect(request)
            return WireConversation(clock, wire, dialect, request.secret)

        # vLLM's model works on segments of a fixed length: its first text came at 5.0 s whatever was said
        return Live(
            converse=converse, fixed_cadence=vllm, append_only=True, finishes=turns == _NO_TURNS,
            endpoints=turns != _NO_TURNS, isolation="shared",
        )  # fmt: skip


class OpenAIDialect:
    """One session. Items are segments, in the order in which they are first heard of."""

    greeting, accepting = "session.created", "session.updated"

    def __init__(self, request: Request) -> None:
        self._options = request.options
        self._rate = int(request.options.get("rate") or _OPENAI_RATE)
        self._resample = Resampler(self._rate)
        self._texts: dict[str, str] = {}
        self._order: list[str] = []
        self._done: set[str] = set()
        self._turns: str = request.options["turns_by"]
        self._finished = False

    def hello(self) -> Sequence[Message]:
        """The format of the audio, and how it is transcribed."""
        asked = {name: self._options.get(name) for name in ("model", "language", "prompt")}
        detection = None if self._turns == _NO_TURNS else {"type": self._turns}
        audio = {
            "format": {"type": "audio/pcm", "rate": self._rate},
            "transcription": {name: value for name, value in asked.items() if value is not None},
            "turn_detection": detection,
        }
        return [_json("session.update", session={"type": "transcription", "audio": {"input": audio}})]

    def audio(self, pcm: Any) -> Sequence[Message]:
        """Samples at the server's rate."""
        return _appended(self._resample(pcm))

    def finish(self) -> Sequence[Message]:
        """What the resampler holds back, and the commit."""
        self._finished = True
        return [*_appended(self._resample.rest()), _json("input_audio_buffer.commit")]

    def hear(self, message: Message, now_s: float) -> Iterator[Event]:
        """What a message says; types that are not known say nothing."""
        data = mapping_in(message)
        kind = str(data.get("type", ""))
        if kind == "error" or kind == _TRANSCRIPTION + "failed":
            yield Event(kind="error", moment_s=now_s, text=error_text(data))
        elif kind == "input_audio_buffer.speech_stopped":
            # its audio_end_ms contains the silence that was waited for
            yield Event(kind="endpoint", moment_s=now_s, segment=self._place(data))
        elif kind == "input_audio_buffer.committed":  # the order of the texts of two items is not promised
            self._place(data)
        elif kind in (_TRANSCRIPTION + "delta", _TRANSCRIPTION + "completed"):
            yield from self._text(data, kind, now_s)

    def _text(self, data: Mapping[str, Any], kind: str, now_s: float) -> Iterator[Event]:
        place, item = self._place(data), str(data.get("item_id", ""))
        if kind.endswith("delta"):
            self._texts[item] = self._texts.get(item, "") + text_in(data, "delta")
            yield Event(kind="partial", moment_s=now_s, text=self._texts[item].strip(), segment=place)
            return
        self._done.add(item)
        yield Event(kind="final", moment_s=now_s, text=text_in(data, "transcript").strip(), segment=place)
        if self._finished and self._done >= set(self._order):
            yield Event(kind="closed", moment_s=now_s)

    def _place(self, data: Mapping[str, Any]) -> int:
        item = str(data.get("item_id", ""))
        if item not in self._order:
            self._order.append(item)
        return self._order.index(item)


class VllmDialect:
    """One session with one text."""

    greeting, accepting = "session.created", ""

    def __init__(self, request: Request) -> None:
        self._model = request.options["model"]
        self._resample = Resampler(int(request.options.get("rate") or RATE))
        self._text = ""

    def hello(self) -> Sequence[Message]:
        """The model, and the commit that starts decoding."""
        return [_json("session.update", model=self._model), _json("input_audio_buffer.commit", final=False)]

    def audio(self, pcm: Any) -> Sequence[Message]:
        """Samples at the server's rate."""
        return _appended(self._resample(pcm))

    def finish(self) -> Sequence[Message]:
        """The final commit."""
        return [*_appended(self._resample.rest()), _json("input_audio_buffer.commit", final=True)]

    def hear(self, message: Message, now_s: float) -> Iterator[Event]:
        """What a message says; types that are not known say nothing."""
        data = mapping_in(message)
        kind = data.get("type")
        if kind == "error":
            yield Event(kind="error", moment_s=now_s, text=error_text(data))
        elif kind == "transcription.delta":
            self._text += text_in(data, "delta")
            yield Event(kind="partial", moment_s=now_s, text=self._text.strip())
        elif kind == "transcription.done":
            yield Event(kind="final", moment_s=now_s, text=text_in(data, "text").strip() or self._text.strip())
            yield Event(kind="closed", moment_s=now_s)


def _appended(samples: Any) -> list[Message]:
    if not len(samples):
        return []
    return [_json("input_audio_buffer.append", audio=b64encode(pcm16(samples)).decode())]


def _json(kind: str, **fields: Any) -> str:
    return json.dumps({"type": kind, **fields})
