"""Moonshine through moonshine-voice, a C++ engine on ONNX Runtime. Release 0.0.73 carries tiny-en in its package."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speechmeter.core.axes import Axis, Option
from speechmeter.core.errors import SubjectError
from speechmeter.core.protocols import SOUND, Installed, Prepared
from speechmeter.core.types import Batch, Case, Spec, Stage
from speechmeter.subjects.installed import installed
from speechmeter.subjects.refusals import cpu_engine

if TYPE_CHECKING:
    from moonshine_voice.moonshine_api import Transcript
    from moonshine_voice.transcriber import Transcriber

    Partial = tuple[int, str]
    """The number of an item in its batch, and its text so far."""

_RATE = 16_000
_UPDATE = 8_000
"""Samples between two partial results: half a second, the library's own default."""
_BUNDLED = "tiny-en"
_FILES = ("encoder_model.ort", "decoder_model_merged.ort", "tokenizer.bin")
_ARCHS = ("tiny", "base")
_ONE_THREAD = "MOONSHINE_ORT_SINGLE_THREAD"
"""The only word on threads that the engine listens to; otherwise it starts one for each core of the machine."""


class MoonshineSubject:
    """`moonshine-voice` or `moonshine-voice:DIRECTORY`: one stage, from sound to text as the engine runs it."""

    summary = "Moonshine tiny-en of its package, or a directory with such a model; streaming: true gives partials"
    axes: tuple[Axis, ...] = ()
    options = (
        Option(name="arch"),
        Option(name="streaming"),
    )
    runs_code = False
    takes = (SOUND,)

    def installed(self) -> Installed:
        """Needs moonshine-voice."""
        return installed("moonshine_voice", extra="moonshine")

    def check(self, case: Case) -> None:
        """The directory must hold a model, and its architecture must be known."""
        streaming = case.subject.options.get("streaming", False)
        if not isinstance(streaming, bool):
            raise SubjectError(f"streaming takes true or false, not {streaming!r}", fix="mend streaming")
        directory = _directory(case.subject)
        if not directory.is_dir():
            raise SubjectError(f"there is no directory {str(directory)!r}", fix=_way_out(case.subject))
        missing = [name for name in _FILES if not (directory / name).is_file()]
        if missing:
            raise SubjectError(f"{str(directory)!r} holds no {' and no '.join(missing)}", fix=_way_out(case.subject))
        _arch(case.subject)

    def unavailable(self, case: Case) -> str | None:
        """It runs on the CPU, on one thread or on all cores: its own threads leave the cores a process is held to."""
        threads, here = int(case.axes["threads"]), os.cpu_count()
        if reason := cpu_engine(case, "moonshine-voice"):
            return reason
        if threads == 1 or threads == case.axes["cores"] == here:
            return None
        return f"moonshine-voice runs on 1 thread or on all {here} cores of the machine, not on {threads}"

    def prepare(self, case: Case, device: str) -> Prepared:
        """Load encoder, decoder and tokenizer."""
        one_thread = int(case.axes["threads"]) == 1
        _set_threads(one_thread)
        transcriber = _load(case.subject)
        streaming = bool(case.subject.options.get("streaming", False))
        whole = (Stage(name="model", fn=_transcribe(transcriber)),)
        partial = (Stage(name="model", fn=_stream(transcriber)), Stage(name="final", fn=_final, clocked=False))
        return Prepared(
            stages=partial if streaming else whole,
            close=transcriber.close,
            notes=tuple(_notes(one_thread, streaming)),
            data_dependent=True,
        )


def _notes(one_thread: bool, streaming: bool) -> Iterator[str]:
    yield "8-bit weights whatever `dtype` is; cut at pauses by the engine's own voice detector; items one after another"
    if not one_thread:
        yield "threads: as many as the engine takes, one for each physical core"
    if streaming:
        yield "streaming: fed 0.5 s of sound at a time, without waiting for it; a partial result for each changed text"


def _directory(spec: Spec) -> Path:
    """Where the model is: found without importing the package."""
    if spec.source:
        return Path(spec.source)
    found = find_spec("moonshine_voice")
    places = list(found.submodule_search_locations or ()) if found else []
    return Path(places[0] if places else "moonshine_voice") / "assets" / _BUNDLED


def _way_out(spec: Spec) -> str:
    if spec.source:
        return f"name a directory with {', '.join(_FILES)}, or write `moonshine-voice` alone"
    return "install moonshine-voice 0.0.73, which carries this model, or name a directory: moonshine-voice:DIRECTORY"


def _arch(spec: Spec) -> str:
    """The architecture: as the option says, else by the beginning of the directory's name."""
    given = spec.options.get("arch")
    if given is not None and given not in _ARCHS:
        raise SubjectError(f"arch takes one of {', '.join(_ARCHS)}, not {given!r}", fix="mend arch")
    named = _directory(spec).resolve().name.partition("-")[0]
    if given is None and named not in _ARCHS:
        raise SubjectError(f"{spec.source!r} does not tell its architecture", fix="add the option arch: tiny or base")
    return str(given or named)


def _set_threads(one: bool) -> None:
    if one:
        os.environ[_ONE_THREAD] = "1"
    else:
        os.environ.pop(_ONE_THREAD, None)


def _load(spec: Spec) -> Transcriber:
    from moonshine_voice import ModelArch
    from moonshine_voice.errors import MoonshineError
    from moonshine_voice.transcriber import Transcriber

    directory, arch = _directory(spec), ModelArch[_arch(spec).upper()]
    try:
        # without this option every result carries the sound back as a list of Python numbers
        return Transcriber(directory, arch, options={"return_audio_data": "false"})
    except MoonshineError as error:
        raise SubjectError(f"moonshine-voice cannot load {str(directory)!r}: {error}", fix=_way_out(spec)) from error


def _transcribe(transcriber: Transcriber) -> Callable[[Batch], list[str]]:
    def transcribe(batch: Batch) -> list[str]:
        return [text for wave in _waves(batch) for text in _texts(transcriber, wave, len(wave))]

    return transcribe


def _stream(transcriber: Transcriber) -> Callable[[Batch], Iterator[Partial]]:
    def stream(batch: Batch) -> Iterator[Partial]:
        for item, wave in enumerate(_waves(batch)):
            shown = None
            for text in _texts(transcriber, wave, _UPDATE):
                if text != (shown or ""):
                    shown = text
                    yield item, text
            if shown is None:
                yield item, ""

    return stream


def _final(partials: Iterable[Partial]) -> list[str]:
    """The last text of each item."""
    return list(dict(partials).values())


def _waves(batch: Batch) -> Iterator[Any]:
    return (wave[:length] for wave, length in zip(batch.data, batch.lengths, strict=True))


def _texts(transcriber: Transcriber, wave: Any, step: int) -> Iterator[str]:
    """The text so far after every `step` samples.

    Each recording has a stream of its own. The library's call for whole recordings costs the same and starts with what
    its voice detector kept of the one before: words appear that nobody said.
    """
    with transcriber.create_stream(update_interval=inf) as stream:
        stream.start()
        for start in range(0, len(wave), step):
            stream.add_audio(wave[start : start + step].tolist(), _RATE)
            yield _text(stream.update_transcription(transcriber.MOONSHINE_FLAG_FORCE_UPDATE))
        stream.stop()


def _text(transcript: Transcript) -> str:
    return " ".join(line.text.strip() for line in transcript.lines if line.text.strip())
