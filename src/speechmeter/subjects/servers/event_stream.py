"""What servers stream as events while they transcribe a file: three dialects under one name, told apart as they come.

OpenAI: `{"type": "transcript.text.delta", "delta": " x"}` … `transcript.text.done` with the text. vLLM: `{"choices":
[{"delta": {"content": " x"}}]}` … `[DONE]`. transformers serve: the bare text, and the end of the connection.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from speechmeter.core.errors import ConversationError
from speechmeter.core.live import CONNECTION, Event
from speechmeter.subjects.servers.wire import error_text, text_in

_DONE = "[DONE]"


class EventStream:
    """The texts of one answer. All three dialects only append."""

    def __init__(self) -> None:
        self._text = ""
        self._ends_by_word = False
        self.ended = False
        """Whether the answer is complete."""

    def hear(self, data: str, now_s: float) -> Iterator[Event]:
        """What an event says. Types that are not known say nothing."""
        if self.ended:
            return
        if data.strip() == _DONE:
            yield self._final(self._text, now_s)
            return
        found = _mapping(data)
        if found is None:
            yield from self._more(data, now_s)
        elif "error" in found or found.get("type") == "error":
            self.ended = True
            yield Event(kind="error", moment_s=now_s, text=error_text(found))
        else:
            self._ends_by_word = True
            yield from self._known(found, now_s)

    def end(self, now_s: float) -> Iterator[Event]:
        """The connection has ended. Raises ConversationError where the dialect says first that the text is complete."""
        if self.ended:
            return
        if self._ends_by_word:
            raise ConversationError("the connection ended before the answer was complete", kind=CONNECTION)
        yield self._final(self._text, now_s)

    def _known(self, found: Mapping[str, Any], now_s: float) -> Iterator[Event]:
        kind = found.get("type")
        if kind == "transcript.text.delta":
            yield from self._more(text_in(found, "delta"), now_s)
        elif kind == "transcript.text.done":
            yield self._final(text_in(found, "text") or self._text, now_s)
        choices = found.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        delta = first.get("delta") if isinstance(first, Mapping) else None
        if isinstance(delta, Mapping):
            yield from self._more(text_in(delta, "content"), now_s)

    def _more(self, text: str, now_s: float) -> Iterator[Event]:
        self._text += text
        if text:
            yield Event(kind="partial", moment_s=now_s, text=self._text.strip())

    def _final(self, text: str, now_s: float) -> Event:
        self.ended = True
        return Event(kind="final", moment_s=now_s, text=text.strip())


def _mapping(data: str) -> Mapping[str, Any] | None:
    """A JSON mapping; None for bare text, which may look like a number."""
    try:
        found = json.loads(data)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
