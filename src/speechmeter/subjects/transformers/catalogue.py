"""What the installed transformers has, read from its files: importing it would take seconds in every preflight.

A head is what a model is used for. Which classes an architecture has for a head stands in the library's own tables;
heads that the library has no table for (a vocoder, speech to speech) have theirs here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SOUND, TEXT, FRAMES = "sound", "text", "frames"
"""What a model is fed: waveforms, text or token ids, frames of a spectrogram."""

_MODEL_TYPE = re.compile(r'^    model_type = "([^"]+)"', re.MULTILINE)
_TABLE = re.compile(r"^(\w+_NAMES) = OrderedDict\(\n    \[\n(.*?)^    \]", re.MULTILINE | re.DOTALL)
_ENTRY = re.compile(r'^        \("([^"]+)", "([^"]+)"\)', re.MULTILINE)
_EXTRACTORS = ("FEATURE_EXTRACTOR_MAPPING_NAMES", "MISSING_FEATURE_EXTRACTOR_MAPPING_NAMES")
_BASE = "MODEL_MAPPING_NAMES"
CODECS = frozenset({"dac", "encodec", "mimi"})
_WHOLE = frozenset({*CODECS, "univnet"})
_PROMPTED = frozenset(
    {"dia", "fun_asr_nano", "kyutai_speech_to_text", "pop2piano", "qwen3_asr", "vibevoice", "vibevoice_asr"}
)
_SEAMLESS = ("seamless_m4t", "seamless_m4t_v2")


@dataclass(frozen=True, kw_only=True)
class Head:
    """What a model is used for: what it is fed, and where its classes stand."""

    takes: str = SOUND
    table: str = ""
    classes: Mapping[str, str] = field(default_factory=dict)
    takes_frames: frozenset[str] = frozenset()


_SPEECH_TO_TEXT = Head(table="MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES")
HEADS: Mapping[str, Head] = {
    "rnnt": Head(table="MODEL_FOR_RNNT_MAPPING_NAMES"),
    "tdt": Head(table="MODEL_FOR_TDT_MAPPING_NAMES"),
    "codec": Head(classes={"encodec": "EncodecModel", "dac": "DacModel", "mimi": "MimiModel"}),
    "seq2seq": _SPEECH_TO_TEXT,
    "mt": Head(takes=TEXT, table="MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES"),
    "tts": Head(
        takes=TEXT,
        classes={
            "fastspeech2_conformer": "FastSpeech2ConformerModel",
            "fastspeech2_conformer_with_hifigan": "FastSpeech2ConformerWithHifiGan",
            "seamless_m4t": "SeamlessM4TForTextToSpeech",
            "seamless_m4t_v2": "SeamlessM4Tv2ForTextToSpeech",
            "speecht5": "SpeechT5ForTextToSpeech",
            "vits": "VitsModel",
        },
    ),
    "s2st": Head(
        classes={
            "seamless_m4t": "SeamlessM4TForSpeechToSpeech",
            "seamless_m4t_v2": "SeamlessM4Tv2ForSpeechToSpeech",
            "speecht5": "SpeechT5ForSpeechToSpeech",
        },
    ),
    "vocoder": Head(
        takes=TEXT,
        classes={
            "dac": "DacModel",
            "encodec": "EncodecModel",
            "fastspeech2_conformer_hifigan": "FastSpeech2ConformerHifiGan",
            "hifigan": "SpeechT5HifiGan",
            "mimi": "MimiModel",
            "seamless_m4t": "SeamlessM4TCodeHifiGan",
            "seamless_m4t_v2": "SeamlessM4Tv2CodeHifiGan",
            "speecht5_hifigan": "SpeechT5HifiGan",
            "univnet": "UnivNetModel",
        },
        takes_frames=frozenset({"fastspeech2_conformer_hifigan", "hifigan", "speecht5_hifigan", "univnet"}),
    ),
    "ctc": Head(table="MODEL_FOR_CTC_MAPPING_NAMES"),
    "encoder": Head(table=_BASE),
    "units": Head(table=_BASE),
    "st": _SPEECH_TO_TEXT,
}
"""By name, the most specific use of an architecture first; `st` (speech to translated text) is seq2seq's other name."""
_OF_CLASS = {
    "ForCTC": "ctc",
    "ForRNNT": "rnnt",
    "ForTDT": "tdt",
    "ForSpeechToSpeech": "s2st",
    "ForSpeechToText": "seq2seq",
    "ForTextToSpeech": "tts",
    "ForTextToText": "mt",
    "HifiGan": "vocoder",
}
"""What the end of the class's name in `architectures` says of the use it was trained for."""
PAIRED = frozenset({"wav2vec2-bert", "seamless_m4t", "seamless_m4t_v2"})
"""Architectures that hear log-mel frames in pairs."""
_USUAL_BANDS = 80
NEEDS_VOCODER = frozenset({"speecht5", "fastspeech2_conformer"})
"""Architectures that speak in spectrograms."""


@cache
def model_types() -> frozenset[str]:
    """Every model type that transformers defines, such as `wav2vec2` or `whisper`; none where it is not installed."""
    texts = (file.read_text(errors="replace") for file in _folder().glob("*/configuration_*.py"))
    return frozenset(name for text in texts for name in _MODEL_TYPE.findall(text))


def class_name(head: str, model_type: str) -> str | None:
    """The class that an architecture has for a head; None when it has none."""
    wanted = HEADS[head]
    if head in ("encoder", "units") and (model_type not in extractors() or model_type in _WHOLE):
        return None  # a base class of text or pictures, or one that puts out sound
    if is_prompted(model_type):
        return None
    return wanted.classes.get(model_type) or _tables().get(wanted.table, {}).get(model_type)


def is_prompted(model_type: str) -> bool:
    """Whether it is a language model that hears: its prompt of text and sound together is not made here."""
    writes = model_type in _tables().get(HEADS["mt"].table, {})
    return model_type in _PROMPTED or (writes and model_type in extractors() and model_type not in _SEAMLESS)


def heads_of(model_type: str) -> list[str]:
    """The heads that an architecture has classes for, the most specific first."""
    return [head for head in HEADS if class_name(head, model_type) is not None]


def takes(head: str, model_type: str) -> str:
    """What the architecture is fed under this head: SOUND, TEXT or FRAMES."""
    return FRAMES if model_type in HEADS[head].takes_frames else HEADS[head].takes


def feature_bands(model_type: str, config: Mapping[str, Any]) -> int | None:
    """How many bands features must have to be fed past the front-end of an architecture; None where none can be.

    The others hear waveforms, or windows that their own front-end makes.
    """
    if model_type == "speech_to_text":
        bands = config.get("input_feat_per_channel", _USUAL_BANDS)
    elif model_type in PAIRED:
        return int(config.get("feature_projection_input_dim", 2 * _USUAL_BANDS)) // 2
    elif model_type.startswith("parakeet"):
        bands = (config.get("encoder_config") or {}).get("num_mel_bins", _USUAL_BANDS)
    else:
        return None
    return int(bands)


def natural_head(model_type: str, architectures: Sequence[str] = (), fed: str | None = None) -> str | None:
    """What an architecture is for when the plan does not say; `fed` settles it where there are several uses."""
    named = [head for name in architectures for end, head in _OF_CLASS.items() if name.endswith(end)]
    if named and class_name(named[0], model_type):
        return named[0]
    fitting = [head for head in heads_of(model_type) if _first_choice(head, model_type)]
    by_input = [head for head in fitting if fed is not None and takes(head, model_type) == fed]
    return next(iter(by_input or fitting), None)


def _first_choice(head: str, model_type: str) -> bool:
    """CTC is the first choice where the architecture is nothing else: wav2vec 2.0 by itself is an encoder."""
    return head != "ctc" or class_name(head, model_type) == _tables()[_BASE].get(model_type)


@cache
def extractors() -> dict[str, str]:
    """The feature extractor of each architecture that hears."""
    return {name: made for table in _EXTRACTORS for name, made in _tables().get(table, {}).items()}


@cache
def _tables() -> dict[str, dict[str, str]]:
    texts = [file.read_text(errors="replace") for file in sorted((_folder() / "auto").glob("*.py"))]
    return {name: dict(_ENTRY.findall(body)) for text in texts for name, body in _TABLE.findall(text)}


def _folder() -> Path:
    spec = find_spec("transformers")
    if spec is None or not spec.submodule_search_locations:
        return Path("transformers is not installed")
    return Path(next(iter(spec.submodule_search_locations))) / "models"
