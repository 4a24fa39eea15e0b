"""Moonshine through moonshine-voice, a C++ engine on ONNX Runtime. Release 0.0.73 has tiny-en in its package."""

from __future__ import annotations

import os
from importlib.util import find_spec
from math import inf
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from speechmeter.core.axes import Axis, Option
from speechmeter.core.errors import SubjectError
from speechmeter.core.live import Live
from speechmeter.core.protocols import SOUND, Installed, Prepared
from speechmeter.core.types import Batch, Case, Spec, Stage
from speechmeter.subjects.common import RATE, cpu_engine, installed, waves
from speechmeter.subjects.live.hearing import Heard, Hearing, hearing

if TYPE_CHECKING:
    from moonshine_voice.transcriber import Transcriber

_UPDATE_S = 0.5
"""Seconds between two partial results: the library's own default."""
_BUNDLED = "tiny-en"
_FILES = ("encoder_model.ort", "decoder_model_merged.ort", "tokenizer.bin")
_ARCHS = ("tiny", "base")
_ONE_THREAD = "MOONSHINE_ORT_SINGLE_THREAD"
"""The engine's only setting for threads; without it, it starts one for each core of the machine."""


class MoonshineSubject:
    """`moonshine-voice` or `moonshine-voice:DIRECTORY`: one stage, from sound to text as the engine runs it."""

    summary = "Moonshine tiny-en from its package, or a directory with a Moonshine model"
    axes: tuple[Axis, ...] = ()
    options = (
        Option(
            name="arch",
            kind=str,
            choices=_ARCHS,
            help="architecture of the model; default: taken from the directory's name",
        ),
        Option(
            name="update",
            kind=float,
            default=_UPDATE_S,
            above=0,
            help="live: seconds of audio between two partial results",
        ),
    )
    runs_code = False
    takes = (SOUND,)

    def installed(self) -> Installed:
        """Needs moonshine-voice."""
        return installed("moonshine_voice", extra="moonshine")

    def check(self, case: Case) -> None:
        """The directory must contain a model of a known architecture."""
        directory = _directory(case.subject)
        if not directory.is_dir():
            raise SubjectError(f"there is no directory {str(directory)!r}", fix=_way_out(case.subject))
        missing = [name for name in _FILES if not (directory / name).is_file()]
        if missing:
            raise SubjectError(f"{str(directory)!r} contains no {' and no '.join(missing)}", fix=_way_out(case.subject))
        _arch(case.subject)

    def unavailable(self, case: Case) -> str | None:
        """It runs on the CPU, on one thread or on all cores: its own threads ignore a process's core affinity."""
        threads, here = case.axes.threads, os.cpu_count()
        if reason := cpu_engine(case, "moonshine-voice"):
            return reason
        if threads == 1 or threads == case.axes.cores == here:
            return None
        return f"moonshine-voice runs on 1 thread or on all {here} cores of the machine, not on {threads}"

    def not_live(self, case: Case) -> str | None:
        """Always live, by the engine's own streams."""
        return None

    def prepare(self, case: Case, device: str) -> Prepared:
        """Load encoder, decoder and tokenizer."""
        from moonshine_voice import ModelArch
        from moonshine_voice.errors import MoonshineError
        from moonshine_voice.transcriber import Transcriber

        notes = ["weights are 8-bit whatever `dtype` is; the engine's voice detector cuts the audio at pauses; "
                 "items run one after another"]  # fmt: skip
        if case.axes.threads == 1:
            os.environ[_ONE_THREAD] = "1"
        else:
            os.environ.pop(_ONE_THREAD, None)
            notes.append("threads: chosen by the engine, one for each physical core")
        directory, arch = _directory(case.subject), ModelArch[_arch(case.subject).upper()]
        try:
            # without this option every result carries the sound back as a list of Python numbers
            transcriber = Transcriber(directory, arch, options={"return_audio_data": "false"})
        except MoonshineError as error:
            raise SubjectError(
                f"moonshine-voice cannot load {str(directory)!r}: {error}", fix=_way_out(case.subject)
            ) from error

        def transcribe(batch: Batch) -> list[str]:
            return [_text(transcriber, wave) for wave in waves(batch)]

        update_s = float(case.subject.options.get("update", _UPDATE_S))
        hear = hearing(lambda: _Engine(transcriber, update_s))
        live = Live(converse=lambda clock: Hearing(clock, hear), endpoints=True)
        if case.live is not None:
            notes.append(f"live: a partial result every {update_s:g} s of audio; streams share the model")
        stages = (Stage(name="model", fn=transcribe),)
        return Prepared(stages=stages, live=live, close=transcriber.close, notes=tuple(notes), data_dependent=True)


def _directory(spec: Spec) -> Path:
    """Where the model is: found without importing the package."""
    if spec.source:
        return Path(spec.source)
    found = find_spec("moonshine_voice")
    folders = list(found.submodule_search_locations or ()) if found else []
    return Path(folders[0] if folders else "moonshine_voice") / "assets" / _BUNDLED


def _way_out(spec: Spec) -> str:
    if spec.source:
        return f"use a directory with {', '.join(_FILES)}, or write only moonshine-voice"
    return "install moonshine-voice 0.0.73, which contains this model, or name a directory: moonshine-voice:DIRECTORY"


def _arch(spec: Spec) -> str:
    """The architecture: as the option says, else by the beginning of the directory's name."""
    given = spec.options.get("arch")
    named = _directory(spec).resolve().name.partition("-")[0]
    if given is None and named not in _ARCHS:
        raise SubjectError(
            f"the name of {spec.source!r} does not show its architecture", fix="use `arch: tiny` or `arch: base`"
        )
    return str(given or named)


def _text(transcriber: Transcriber, wave: Any) -> str:
    """The text of a whole recording.

    Each recording has a stream of its own. The library's call for whole recordings costs the same, but starts with what
    its voice detector kept of the recording before: words appear that were not said.
    """
    with transcriber.create_stream(update_interval=inf) as stream:
        stream.start()
        stream.add_audio(wave.tolist(), RATE)
        transcript = stream.update_transcription(transcriber.MOONSHINE_FLAG_FORCE_UPDATE)
        text = " ".join(line.text.strip() for line in transcript.lines if line.text.strip())
        stream.stop()
    return text


class _Engine:
    """One of the engine's streams: a line of text for each stretch between pauses, which its voice detector finds."""

    def __init__(self, transcriber: Transcriber, update_s: float) -> None:
        self._stream = transcriber.create_stream(update_interval=update_s)
        self._said: list[Heard] = []
        self._segments: dict[int, int] = {}
        self._error: Exception | None = None
        self._finished = False
        self._stream.add_listener(self._listen)
        self._stream.start()

    def feed(self, samples: Any) -> list[Heard]:
        """Lines that changed or ended. The engine decodes inside this call, every `update` seconds of audio."""
        self._stream.add_audio(samples.tolist(), RATE)
        return self._taken()

    def finish(self) -> list[Heard]:
        """The end of the last line."""
        self._finished = True
        self._stream.stop()
        return self._taken()

    def close(self) -> None:
        """Free the stream."""
        self._stream.close()

    def _listen(self, event: Any) -> None:
        line, kind = event.line, type(event).__name__
        if kind == "Error":
            self._error = event.error
            return
        if kind not in ("LineTextChanged", "LineCompleted"):
            return
        segment = self._segments.setdefault(line.line_id, len(self._segments))
        start_s, end_s = float(line.start_time), float(line.start_time + line.duration)
        text, at_s = line.text.strip(), perf_counter()
        span = {"text": text, "segment": segment, "start_s": start_s, "end_s": end_s, "at_s": at_s}
        if kind == "LineTextChanged":
            self._said.append(Heard(kind="partial", **span))
        else:
            if not self._finished:  # at the end of input the engine decides nothing
                self._said.append(Heard(kind="endpoint", segment=segment, start_s=start_s, end_s=end_s, at_s=at_s))
            self._said.append(Heard(kind="final", **span))

    def _taken(self) -> list[Heard]:
        if self._error is not None:  # the library swallows what a listener raises
            raise RuntimeError(f"moonshine-voice failed: {self._error}")
        said, self._said = self._said, []
        return said
