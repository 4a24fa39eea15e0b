"""Events as a system gives them, checked: what a definition is made from must be what it says it is."""

from __future__ import annotations

from math import isfinite
from typing import Any

from speechmeter.core.errors import ConversationError
from speechmeter.core.live import EVENT_KINDS, GARBAGE, Event

_SLACK_S = 1e-3
"""By so much an event may seem to come from the future: clocks of two processes are read one after another."""


def checked(event: Any, *, began_s: float, now_s: float) -> Event:
    """The event, where kind, moment and text can be what they say.

    Raises TypeError for what is no event, and ConversationError for one that no conversation can have, which began at
    `began_s` on the clock.
    """
    if not isinstance(event, Event):
        raise TypeError(f"events() must yield Event, not {type(event).__name__}")
    wrong = _wrong(event, began_s, now_s)
    if wrong:
        raise ConversationError(wrong, kind=GARBAGE)
    return event


def _wrong(event: Event, began_s: float, now_s: float) -> str:
    if event.kind not in EVENT_KINDS:
        return f"an event has the unknown kind {event.kind!r}; kinds are {', '.join(EVENT_KINDS)}"
    if not isinstance(event.text, str):
        return f"the text of an event is {type(event.text).__name__}, not str"
    if not isinstance(event.segment, int):
        return f"the segment of an event is {event.segment!r}; segments are whole numbers"
    if any(not _is_number(one) for one in (event.start_s, event.end_s) if one is not None):
        return f"start_s and end_s of an event are {event.start_s!r} and {event.end_s!r}; each must be a number or None"
    if not _is_number(event.moment_s):
        return f"moment_s of an event is {event.moment_s!r}; use moment_s=clock.now()"
    if event.moment_s > now_s + _SLACK_S:
        return f"moment_s of an event is {event.moment_s - now_s:.6g} s in the future; use moment_s=clock.now()"
    if event.moment_s < began_s - _SLACK_S:
        early_s = began_s - event.moment_s
        return f"moment_s of an event is {early_s:.6g} s before the conversation was opened; use moment_s=clock.now()"
    return ""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
