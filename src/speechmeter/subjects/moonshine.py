"""Moonshine through moonshine-voice, a C++ engine on ONNX Runtime. Release 0.0.73 has tiny-en in its package."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speechmeter.core.axes import Axis, Option
from speechmeter.core.errors import SubjectError
from speechmeter.core.protocols import SOUND, Installed, Prepared
from speechmeter.core.types import Batch, Case, Spec, Stage
from speechmeter.subjects.common import RATE, cpu_engine, installed, waves

if TYPE_CHECKING:
    from moonshine_voice.transcriber import Transcriber

Partial = tuple[int, str]
"""The number of an item in its batch, and its text so far."""
_UPDATE = 8_000
"""Samples between two partial results: half a second, the library's own default."""
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
            name="streaming",
            kind=bool,
            default=False,
            help="true: streaming, with partial results every 0.5 s of audio",
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

    def prepare(self, case: Case, device: str) -> Prepared:
        """Load encoder, decoder and tokenizer."""
        from moonshine_voice import ModelArch
        from moonshine_voice.errors import MoonshineError
        from moonshine_voice.transcriber import Transcriber

        notes = ["8-bit weights whatever `dtype` is; cut at pauses by the engine's own voice detector; "
                 "items one after another"]  # fmt: skip
        if case.axes.threads == 1:
            os.environ[_ONE_THREAD] = "1"
        else:
            os.environ.pop(_ONE_THREAD, None)
            notes.append("threads: as many as the engine takes, one for each physical core")
        directory, arch = _directory(case.subject), ModelArch[_arch(case.subject).upper()]
        try:
            # without this option every result carries the sound back as a list of Python numbers
            transcriber = Transcriber(directory, arch, options={"return_audio_data": "false"})
        except MoonshineError as error:
            raise SubjectError(
                f"moonshine-voice cannot load {str(directory)!r}: {error}", fix=_way_out(case.subject)
            ) from error

        def transcribe(batch: Batch) -> list[str]:
            return [text for wave in waves(batch) for text in _texts(transcriber, wave, len(wave))]

        def stream(batch: Batch) -> Iterator[Partial]:
            for item, wave in enumerate(waves(batch)):
                shown = None
                for text in _texts(transcriber, wave, _UPDATE):
                    if text != (shown or ""):
                        shown = text
                        yield item, text
                if shown is None:
                    yield item, ""

        def final(partials: Iterable[Partial]) -> list[str]:
            return list(dict(partials).values())  # the last text of each item

        stages: tuple[Stage, ...] = (Stage(name="model", fn=transcribe),)
        if case.subject.options.get("streaming", False):
            notes.append(
                "streaming: audio is fed in pieces of 0.5 s without waiting; a partial result is given when the text "
                "changes"
            )
            stages = (Stage(name="model", fn=stream), Stage(name="final", fn=final, clocked=False))
        return Prepared(stages=stages, close=transcriber.close, notes=tuple(notes), data_dependent=True)


def _directory(spec: Spec) -> Path:
    """Where the model is: found without importing the package."""
    if spec.source:
        return Path(spec.source)
    found = find_spec("moonshine_voice")
    folders = list(found.submodule_search_locations or ()) if found else []
    return Path(folders[0] if folders else "moonshine_voice") / "assets" / _BUNDLED


def _way_out(spec: Spec) -> str:
    if spec.source:
        return f"use a directory with {', '.join(_FILES)}, or write moonshine-voice alone"
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


def _texts(transcriber: Transcriber, wave: Any, step: int) -> Iterator[str]:
    """The text so far after every `step` samples.

    Each recording has a stream of its own. The library's call for whole recordings costs the same, but starts with what
    its voice detector kept of the recording before: words appear that were not said.
    """
    with transcriber.create_stream(update_interval=inf) as stream:
        stream.start()
        for start in range(0, len(wave), step):
            stream.add_audio(wave[start : start + step].tolist(), RATE)
            transcript = stream.update_transcription(transcriber.MOONSHINE_FLAG_FORCE_UPDATE)
            yield " ".join(line.text.strip() for line in transcript.lines if line.text.strip())
        stream.stop()
