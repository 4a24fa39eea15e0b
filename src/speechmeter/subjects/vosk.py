"""Vosk: Kaldi's neural models with a graph, streaming, `vosk:DIR`. The package holds no model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speechmeter.core.axes import Axis, Option
from speechmeter.core.errors import SubjectError
from speechmeter.core.live import Live
from speechmeter.core.protocols import SOUND, Installed, Prepared
from speechmeter.core.types import Batch, Case, Stage
from speechmeter.subjects.common import RATE, cpu_engine, installed, waves
from speechmeter.subjects.live.hearing import Heard, Hearing, hearing

if TYPE_CHECKING:
    from vosk import Model

_FULL_SCALE = 32_767
_NEEDED = ("am/final.mdl", "conf")
_FIX = "unpack a Vosk model and name its directory: vosk:DIRECTORY"


class VoskSubject:
    """`vosk:DIR`: one stage; live with partial results and its own end of turns."""

    summary = "Vosk (Kaldi) with a model in a directory: vosk:DIRECTORY; streaming"
    axes: tuple[Axis, ...] = ()
    options: tuple[Option, ...] = ()
    runs_code = False
    takes = (SOUND,)

    def installed(self) -> Installed:
        """Needs vosk."""
        return installed("vosk", extra="vosk")

    def check(self, case: Case) -> None:
        """The directory must contain a model."""
        directory = Path(case.subject.source)
        if not case.subject.source or not directory.is_dir():
            raise SubjectError(f"vosk: there is no directory {case.subject.source!r}", fix=_FIX)
        missing = [name for name in _NEEDED if not (directory / name).exists()]
        if missing:
            raise SubjectError(f"{str(directory)!r} contains no {missing[0]}", fix=_FIX)

    def unavailable(self, case: Case) -> str | None:
        """It runs on the CPU in its own number format."""
        return cpu_engine(case, "vosk")

    def not_live(self, case: Case) -> str | None:
        """Always live."""
        return None

    def prepare(self, case: Case, device: str) -> Prepared:
        """Load the model, which all streams share."""
        import vosk

        vosk.SetLogLevel(-1)
        try:
            model = vosk.Model(case.subject.source)
        except Exception as error:  # the library raises Exception itself
            raise SubjectError(f"vosk cannot load {case.subject.source!r}: {error}", fix=_FIX) from error

        def recognise(batch: Batch) -> list[str]:
            return [_heard(model, wave) for wave in waves(batch)]

        hear = hearing(lambda: _Engine(model))
        return Prepared(
            stages=(Stage(name="model", fn=recognise),),
            live=Live(converse=lambda clock: Hearing(clock, hear), endpoints=True),
            close=lambda: None,
            notes=("items one after another, each on one thread; live streams share the model",),
            data_dependent=True,
        )


def _heard(model: Model, wave: Any) -> str:
    engine = _Engine(model)
    said = [*engine.feed(wave), *engine.finish()]
    return " ".join(heard.text for heard in said if heard.kind == "final" and heard.text)


class _Engine:
    """A recogniser of its own for each conversation; it ends a segment after a pause."""

    def __init__(self, model: Model) -> None:
        from vosk import KaldiRecognizer

        self._recogniser = KaldiRecognizer(model, RATE)
        self._recogniser.SetWords(True)
        self._segment, self._text = 0, ""

    def feed(self, samples: Any) -> Iterator[Heard]:
        """A partial where the text changed; a final after a pause."""
        pcm = (samples.clip(-1, 1) * _FULL_SCALE).astype("int16").tobytes()
        if self._recogniser.AcceptWaveform(pcm):
            yield Heard(kind="endpoint", segment=self._segment)
            yield from self._final(json.loads(self._recogniser.Result()))
            return
        text = json.loads(self._recogniser.PartialResult()).get("partial", "")
        if text != self._text:
            self._text = text
            yield Heard(kind="partial", text=text, segment=self._segment)

    def finish(self) -> Iterator[Heard]:
        """What is left of the last segment."""
        yield from self._final(json.loads(self._recogniser.FinalResult()))

    def close(self) -> None:
        """Free the recogniser."""
        del self._recogniser

    def _final(self, result: dict[str, Any]) -> Iterator[Heard]:
        words = result.get("result", ())
        start_s, end_s = (words[0]["start"], words[-1]["end"]) if words else (None, None)
        yield Heard(kind="final", text=result.get("text", ""), segment=self._segment, start_s=start_s, end_s=end_s)
        self._segment, self._text = self._segment + 1, ""
