"""One conversation, read: which text was shown when, which was final, and when each of its words came to stay."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from speechmeter.analysis.live.alignment import Alignment, align
from speechmeter.core.live import Conditions, Event, Exchange
from speechmeter.core.normalise import normaliser

_SAMPLE_S = 1e-6
"""Positions that differ by less are equal: less than a sample at any rate, more than the error of adding chunks up."""

Split = Callable[[str], tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class Text:
    """The words that a user saw from a moment on."""

    moment_s: float
    words: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Held:
    """Of a word of the final text: when a text held it at its position for the first time, and from when on all did."""

    first_s: float
    stable_s: float


class Talk:
    """An exchange with its conditions, and what follows from both. `split` makes comparable words of a text."""

    def __init__(self, exchange: Exchange, conditions: Conditions, split: Split) -> None:
        self.exchange = exchange
        self.conditions = conditions
        self.split = split

    @cached_property
    def events(self) -> list[Event]:
        """Texts in the order of their arrival."""
        return sorted(self.exchange.of_kind("partial", "final"), key=lambda event: event.moment_s)

    @cached_property
    def shown(self) -> list[Text]:
        """Each text, partial or final, that differs in its words from the one before."""
        return shown_texts(self.events, self.split)

    @cached_property
    def committed(self) -> list[Text]:
        """Each text of all finals that differs in its words from the one before."""
        return shown_texts((event for event in self.events if event.kind == "final"), self.split)

    @cached_property
    def final_words(self) -> tuple[str, ...]:
        """The words of all finals in the end."""
        return self.committed[-1].words if self.committed else ()

    @cached_property
    def final_s(self) -> float | None:
        """When the last final with a word came that changed the committed text; None without one."""
        before: tuple[str, ...] = ()
        latest: dict[int, tuple[str, ...]] = {}
        found = None
        for event in self.events:
            if event.kind == "final":
                words = self.split(event.text)
                latest[event.segment] = words
                text = _joined(latest)
                found = event.moment_s if words and text != before else found
                before = text
        return found

    @cached_property
    def first_text_s(self) -> float | None:
        """When the first partial or final with a word came; None without one."""
        return next((event.moment_s for event in self.events if self.split(event.text)), None)

    @cached_property
    def answer(self) -> str:
        """The text of all finals in the end; empty where the conversation failed: it then has no final text."""
        return "" if self.exchange.error else final_text(self.exchange)

    @cached_property
    def right(self) -> tuple[tuple[int, int], ...]:
        """(index in the words with known times, index in the final text) of each correct word; none if it failed."""
        return () if self.exchange.error else self.alignment.pairs

    @cached_property
    def is_complete(self) -> bool:
        """Whether it ended without an error and with a final text.

        If the reference has no words, or the system gives no text at all, the text is not required.
        """
        if self.exchange.error:
            return False
        return bool(self.final_words) or self.reference_words == () or not self.conditions.texts

    @cached_property
    def reference_words(self) -> tuple[str, ...] | None:
        """The words of the reference; None without a reference."""
        return None if self.exchange.reference is None else self.split(self.exchange.reference)

    @cached_property
    def timed_words(self) -> list[tuple[str, float, float]]:
        """(word, start, end) of the reference, each word made comparable by itself; empty where times are unknown."""
        found = self.exchange.anchors.words
        return [(text, word.start_s, word.end_s) for word in found for text in self.split(word.text)]

    @cached_property
    def alignment(self) -> Alignment:
        """The words with known times and those of the final text."""
        return align([word for word, _, _ in self.timed_words], self.final_words)

    @cached_property
    def held(self) -> list[Held]:
        """For each word of the final text, when it came and when it came to stay."""
        final, end = self.final_words, self.final_s if self.final_s is not None else 0.0
        first: list[float | None] = [None] * len(final)
        since: list[float | None] = [None] * len(final)
        for text in self.shown:
            there = {index for index, _ in align(final, text.words, open_end=True).pairs}
            for index in range(len(final)):
                if index not in there:
                    since[index] = None
                    continue
                first[index] = text.moment_s if first[index] is None else first[index]
                since[index] = text.moment_s if since[index] is None else since[index]
        return [
            Held(first_s=end if a is None else a, stable_s=end if b is None else b)
            for a, b in zip(first, since, strict=True)
        ]

    def spoken(self, position_s: float) -> float | None:
        """The moment at which a position of the audio was to be heard by the system.

        In real time that is the position itself. Audio that is fed as fast as possible is there when the chunk that
        holds it is due; None where no chunk holds it.
        """
        return position_s if self.conditions.pace == "realtime" else self.chunk_due(position_s)

    def chunk_due(self, position_s: float) -> float | None:
        """When the chunk that holds a position was due; None where none does."""
        sends = self.exchange.sends
        return next((one.due_s for one in sends if one.from_s - _SAMPLE_S < position_s <= one.to_s + _SAMPLE_S), None)


def splitter(normaliser_id: str) -> Split:
    """From a text to its words as the normaliser of this id makes them. Each text is normalised once."""
    rule = normaliser(normaliser_id)
    known: dict[str, tuple[str, ...]] = {}

    def split(text: str) -> tuple[str, ...]:
        if text not in known:
            known[text] = tuple(rule(text).split())
        return known[text]

    return split


def shown_texts(events: Iterable[Event], split: Split) -> list[Text]:
    """The text of all segments after each event that changed its words. A partial after its segment's final is none."""
    latest: dict[int, tuple[str, ...]] = {}
    closed: set[int] = set()
    found: list[Text] = []
    before: tuple[str, ...] = ()
    for event in events:
        if event.kind == "final":
            closed.add(event.segment)
        elif event.segment in closed:
            continue
        latest[event.segment] = split(event.text)
        words = _joined(latest)
        if words != before:
            found.append(Text(moment_s=event.moment_s, words=words))
            before = words
    return found


def _joined(latest: dict[int, tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(chain.from_iterable(latest[segment] for segment in sorted(latest)))


def final_text(exchange: Exchange) -> str:
    """The finals in the end, one segment after another."""
    finals = {event.segment: event.text for event in sorted(exchange.of_kind("final"), key=lambda one: one.moment_s)}
    return " ".join(text for _, text in sorted(finals.items()))


def talks(exchanges: Sequence[Exchange], conditions: Conditions) -> list[Talk]:
    """The conversations that are measured: all but warm-ups."""
    split = splitter(conditions.normaliser)
    return [Talk(exchange, conditions, split) for exchange in exchanges if not exchange.warm_up]
