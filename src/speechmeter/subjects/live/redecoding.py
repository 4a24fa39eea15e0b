"""`redecode:MODEL`: any model that turns sound into text, made live by decoding a growing window again and again.

People use Whisper this way. Every `every` seconds of audio the whole window is decoded anew. Words on which the last
`agree` results agree are committed: they stay as they are, and what follows is tentative. A pause, or a window that is
`window` seconds long, ends the segment: its last result is final, and the next window begins behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from speechmeter.core import plugins
from speechmeter.core.axes import OFFLINE, Axes, Axis, Option
from speechmeter.core.errors import SubjectError
from speechmeter.core.live import Live
from speechmeter.core.protocols import SOUND, Installed, Prepared
from speechmeter.core.types import Batch, Case, Spec, Stage
from speechmeter.subjects.common import RATE
from speechmeter.subjects.live.hearing import Heard, Hearing, hearing

Decode = Callable[[Any], str]
_FRAME_S = 0.01
_QUIET_DB = 35.0
"""A pause is this far below the loudest 10 ms of the window."""
_FLOOR = 1e-4
"""Amplitude below which everything is silence: -80 dBFS."""


class RedecodeSubject:
    """`redecode:PLUGIN:SOURCE`: the model behind it, live."""

    summary = "any recogniser, made live by decoding a growing window again: redecode:faster-whisper:DIR"
    axes: tuple[Axis, ...] = ()
    options = (
        Option(name="every", kind=float, default=1.0, above=0, help="seconds of new audio between two decodings"),
        Option(name="window", kind=float, default=28.0, above=0, help="maximum length of a segment in seconds"),
        Option(name="agree", kind=int, default=2, minimum=1, help="results that must agree before words are final"),
        Option(name="pause", kind=float, default=0.7, above=0, help="seconds of silence that end a segment"),
        Option(name="model", kind=dict, help=(
            "options and axes of the recogniser after `redecode:`, such as {language: en}"
        )),
    )  # fmt: skip
    runs_code = False
    takes = (SOUND,)

    def installed(self) -> Installed:
        """Always installed; its model answers for itself."""
        return Installed(version="built in")

    def check(self, case: Case) -> None:
        """There must be a model that takes sound, and it must be sound itself."""
        inner = inner_case(case)
        subject = plugins.subject(inner.subject.plugin)
        if subject.takes and SOUND not in subject.takes:
            raise SubjectError(f"{inner.subject.plugin} does not take audio as input", fix="use a recogniser")
        if subject.runs_code:
            raise SubjectError(
                f"redecode cannot be used with {inner.subject.plugin}, because that runs your code",
                fix="return a generator from a python: factory; see the documentation of live models",
            )
        known = {option.name: option for option in (*subject.options, *subject.axes)}
        for name, value in (case.subject.options.get("model") or {}).items():
            if name not in known:
                raise SubjectError(
                    f"unknown key {name!r} for {inner.subject.plugin!r}",
                    key="model",
                    fix=plugins.nearest(name, list(known)),
                )
            if (wrong := known[name].check(value)) is not None:
                raise SubjectError(f"{inner.subject.plugin}: {wrong}", key="model", fix=known[name].help or None)
        subject.check(inner)

    def unavailable(self, case: Case) -> str | None:
        """As the model says."""
        inner = inner_case(case)
        subject = plugins.subject(inner.subject.plugin)
        return subject.installed().missing or subject.unavailable(inner)

    def not_live(self, case: Case) -> str | None:
        """Always live."""
        return None

    def prepare(self, case: Case, device: str) -> Prepared:
        """Load the model."""
        inner = inner_case(case)
        model = plugins.subject(inner.subject.plugin).prepare(inner, device)
        if case.live is None or case.axes.pace == OFFLINE:
            return model
        policy = policy_of(case)
        decode = _decoding(model.stages, model.sync)
        hear = hearing(lambda: Redecoding(decode, policy))
        return replace(
            model,
            live=Live(converse=lambda clock: Hearing(clock, hear, joins=True), endpoints=True),
            notes=(*model.notes, policy.note()),
        )


@dataclass(frozen=True, kw_only=True)
class Policy:
    """When a window is decoded, what is committed, and when a segment ends."""

    every_s: float
    window_s: float
    agree: int
    pause_s: float

    def note(self) -> str:
        """The policy in words."""
        return (
            f"live by decoding again after every {self.every_s:g} s of audio; words are final when {self.agree} "
            f"results agree; a pause of {self.pause_s:g} s or a window of {self.window_s:g} s ends a segment"
        )


def policy_of(case: Case) -> Policy:
    """The policy that a case's options make."""
    given = {option.name: option.default for option in RedecodeSubject.options} | dict(case.subject.options)
    return Policy(every_s=given["every"], window_s=given["window"], agree=given["agree"], pause_s=given["pause"])


def inner_case(case: Case) -> Case:
    """The case of the model behind it, with the model's own axes at their defaults where they are not given."""
    plugin, _, source = case.subject.source.partition(":")
    if not plugin:
        raise SubjectError("redecode needs a model", fix="for example redecode:faster-whisper:DIRECTORY")
    subject = plugins.subject(plugin)
    given = dict(case.subject.options.get("model") or {})
    axes = {axis.name: given.pop(axis.name, axis.default) for axis in subject.axes}
    spec = Spec(plugin=plugin, name=case.subject.name, source=source, options=given)
    return replace(case, subject=spec, axes=Axes({**axes, **case.axes}))


def _decoding(stages: Sequence[Stage], sync: Callable[[], None]) -> Decode:
    """The text of one array, by the model's whole chain."""

    def decode(samples: Any) -> str:
        seconds = len(samples) / RATE
        state: Any = Batch(
            data=samples[None], items=1, ids=("live",), lengths=(len(samples),), audio_s=seconds, padded_s=seconds
        )
        for stage in stages:
            state = stage.fn(state)
            if hasattr(state, "__next__"):
                state = list(state)
        sync()
        text = state[0] if isinstance(state, list | tuple) and state else state
        if not isinstance(text, str):
            raise TypeError(f"the output of the model is {type(text).__name__}, not text, so it cannot be live")
        return text

    return decode


class Redecoding:
    """One conversation: the window so far, what is committed, and the results before."""

    def __init__(self, decode: Decode, policy: Policy) -> None:
        import numpy as np

        self._decode, self._policy = decode, policy
        self._window: Any = np.zeros(0, dtype=np.float32)
        self._undecoded, self._from, self._segment, self._peak = 0, 0, 0, 0.0
        self._results: list[list[str]] = []
        self._committed: list[str] = []
        self._shown = ""

    def feed(self, samples: Any) -> Iterator[Heard]:
        """A partial where the text changed; an endpoint and a final at a pause or at the end of the window."""
        import numpy as np

        self._window = np.concatenate([self._window, samples])
        self._undecoded += len(samples)
        self._peak = max(self._peak, loudest(samples))
        if self._paused():
            if self._committed or self._results or self._has_speech():
                yield Heard(kind="endpoint", segment=self._segment, end_s=self._end_s())
                yield self._end_segment()
            else:
                self._drop()
        elif len(self._window) >= self._policy.window_s * RATE:
            yield self._end_segment()
        elif self._undecoded >= self._policy.every_s * RATE:
            yield from self._partial()

    def finish(self) -> Iterator[Heard]:
        """The text of what is left, decoded once more where there is new sound."""
        if self._results or self._has_speech() or not self._segment:
            yield self._end_segment()

    def close(self) -> None:
        """Nothing to free: all conversations share the model."""

    def _partial(self) -> Iterator[Heard]:
        text = self._result()
        if text != self._shown:
            self._shown = text
            yield Heard(
                kind="partial", text=text, segment=self._segment, start_s=self._from / RATE, end_s=self._end_s()
            )

    def _result(self) -> str:
        """Decode the window. Committed words stay; the rest is as the newest result says."""
        words = self._decode(self._window).split()
        self._undecoded = 0
        self._results = [*self._results, words][-self._policy.agree :]
        if len(self._results) == self._policy.agree:
            self._committed += common_start(self._results)[len(self._committed) :]
        return " ".join([*self._committed, *words[len(self._committed) :]])

    def _end_segment(self) -> Heard:
        text = self._result() if self._undecoded else self._shown
        said = Heard(kind="final", text=text, segment=self._segment, start_s=self._from / RATE, end_s=self._end_s())
        self._drop()
        self._segment += 1
        return said

    def _drop(self) -> None:
        """Begin the next window behind this one; its first result owes nothing to this one's."""
        self._from += len(self._window)
        self._window = self._window[:0]
        self._undecoded, self._results, self._committed, self._shown, self._peak = 0, [], [], "", 0.0

    def _end_s(self) -> float:
        return (self._from + len(self._window)) / RATE

    def _paused(self) -> bool:
        size = round(self._policy.pause_s * RATE)
        return len(self._window) >= size and loudest(self._window[-size:]) <= self._quiet()

    def _has_speech(self) -> bool:
        return self._peak > _FLOOR

    def _quiet(self) -> float:
        return float(max(_FLOOR, self._peak * 10 ** (-_QUIET_DB / 20)))


def loudest(samples: Any) -> float:
    """Root mean square of the loudest 10 ms."""
    import numpy as np

    size = round(_FRAME_S * RATE)
    whole = len(samples) // size * size
    frames = samples[:whole].reshape(-1, size) if whole else samples[None]
    return float(np.sqrt((frames.astype(np.float64) ** 2).mean(axis=1)).max()) if frames.size else 0.0


def common_start(results: Sequence[Sequence[str]]) -> list[str]:
    """The words with which all results begin; case and punctuation at a word's end do not count."""
    agreed: list[str] = []
    for words in zip(*results, strict=False):
        if len({word.lower().rstrip(".,;:!?…") for word in words}) > 1:
            break
        agreed.append(words[-1])
    return agreed
