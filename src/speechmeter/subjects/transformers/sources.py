"""What a source names and what the installed transformers has for it, found without importing transformers.

A source is a directory, a config file, an architecture or a hub id. A head is what a model is used for. Which classes
an architecture has for a head is read from the library's own tables, in its files: importing it would take seconds in
every preflight. Heads that the library has no table for (a vocoder, speech to speech) have theirs here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from speechmeter.core.axes import Option
from speechmeter.core.errors import SubjectError
from speechmeter.core.files import MIB, read_text
from speechmeter.core.plugins import nearest
from speechmeter.core.types import Case
from speechmeter.subjects.hub import ask_hub, cached_file, may_be_hub_id

SOUND, TEXT, FRAMES = "sound", "text", "frames"
"""What a model takes: waveforms, text or token ids, frames of a spectrogram."""

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


CLUSTERS = Option(
    name="clusters", kind=int, default=1000, minimum=1, help="number of units for `head: units`; usually 1000"
)


@dataclass(frozen=True, kw_only=True)
class Head:
    """What a model is used for: what it takes, and where its classes are listed."""

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
"""The use that a model was trained for, by the end of the class's name in `architectures`."""
PAIRED = frozenset({"wav2vec2-bert", "seamless_m4t", "seamless_m4t_v2"})
"""Architectures that take log-mel frames in pairs."""
_USUAL_BANDS = 80
NEEDS_VOCODER = frozenset({"speecht5", "fastspeech2_conformer"})
"""Architectures whose output is a spectrogram."""
_FED = {"audio": SOUND, "text": TEXT, "features": FRAMES}
"""What workloads feed, where the use of a model depends on it."""
COMPILED_WHOLE = frozenset({"encoder", "ctc", "units", "vocoder"})
SEARCHES = frozenset({"seq2seq", "st", "mt"})
SPEAKS = frozenset({"tts", "s2st"})
_WALKS = frozenset({"rnnt", "tdt"})
"""Heads by how they run: one call, a search over texts, a synthesis, a walk over the frames."""


@cache
def model_types() -> frozenset[str]:
    """Every model type that transformers defines, such as `wav2vec2` or `whisper`; none where it is not installed."""
    texts = (file.read_text(errors="replace") for file in _folder().glob("*/configuration_*.py"))
    return frozenset(name for text in texts for name in _MODEL_TYPE.findall(text))


def class_name(head: str, model_type: str) -> str | None:
    """The class that an architecture has for a head; None when it has none."""
    wanted = HEADS[head]
    if head in ("encoder", "units") and (model_type not in extractors() or model_type in _WHOLE):
        return None  # a base class for text or pictures, or one whose output is sound
    if is_prompted(model_type):
        return None
    return wanted.classes.get(model_type) or _tables().get(wanted.table, {}).get(model_type)


def is_prompted(model_type: str) -> bool:
    """Whether it is a language model with a prompt of text and sound together, which is not supported."""
    writes = model_type in _tables().get(HEADS["mt"].table, {})
    return model_type in _PROMPTED or (writes and model_type in extractors() and model_type not in _SEAMLESS)


def heads_of(model_type: str) -> list[str]:
    """The heads that an architecture has classes for, the most specific first."""
    return [head for head in HEADS if class_name(head, model_type) is not None]


def takes(head: str, model_type: str) -> str:
    """What the architecture is fed under this head: SOUND, TEXT or FRAMES."""
    return FRAMES if model_type in HEADS[head].takes_frames else HEADS[head].takes


def feature_bands(model_type: str, config: Mapping[str, Any]) -> int | None:
    """How many bands features must have to replace the front-end of an architecture; None where it takes no features.

    The others take waveforms, or windows that their own front-end makes.
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
    """What an architecture is used for when the plan does not say; `fed` decides where there are several uses."""
    named = [head for name in architectures for end, head in _OF_CLASS.items() if name.endswith(end)]
    if named and class_name(named[0], model_type):
        return named[0]
    # CTC only where the architecture is nothing else: wav2vec 2.0 by itself is an encoder
    base = _tables().get(_BASE, {}).get(model_type)
    fitting = [head for head in heads_of(model_type) if head != "ctc" or class_name(head, model_type) == base]
    by_input = [head for head in fitting if fed is not None and takes(head, model_type) == fed]
    return next(iter(by_input or fitting), None)


@cache
def extractors() -> dict[str, str]:
    """The feature extractor of each architecture that takes sound."""
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


def head_of(case: Case, config: Mapping[str, Any]) -> str | None:
    """The head that the plan names, else the natural one of the architecture for what it is fed."""
    named = case.subject.options.get("head")
    if named is not None:
        return str(named)
    fed = TEXT if case.workload.plugin == "cascade" else _FED.get(case.workload.plugin)
    return natural_head(str(config["model_type"]), config.get("architectures") or (), fed)


def is_hub_id(source: str) -> bool:
    """Whether the source can only come from the hub or its cache."""
    return not Path(source).exists() and source not in model_types()


def has_weights(source: str) -> bool:
    """Whether there are weights to load; a config file, an architecture and a bare directory have none."""
    path = Path(source)
    if path.is_dir():
        return any(path.glob("*.safetensors")) or any(path.glob("pytorch_model*.bin"))
    return is_hub_id(source)


def read_config(source: str) -> Mapping[str, Any]:
    """What is known of the configuration: its `model_type` at least, or nothing for a hub id that is not cached.

    Raises SubjectError for a source that does not exist or needs code of its own.
    """
    if Path(source).exists():
        return _local_config(Path(source))
    if source in model_types():
        return {"model_type": source}
    return _hub_config(source)


def _local_config(path: Path) -> Mapping[str, Any]:
    config = path / "config.json" if path.is_dir() else path
    if not config.is_file():
        raise SubjectError(f"{str(path)!r} contains no config.json", fix="use a directory written by save_pretrained")
    try:
        data = json.loads(read_text(config, 16 * MIB))
    except (ValueError, OSError, RecursionError) as error:
        raise SubjectError(f"{str(config)!r} is not a JSON configuration: {error}", fix="use a config.json") from error
    if not isinstance(data, dict) or "model_type" not in data:
        raise SubjectError(f"{str(config)!r} names no model_type", fix="use a transformers configuration")
    if "auto_map" in data:
        raise SubjectError(
            f"{str(path)!r} needs remote code, which is never run", fix="use an architecture of transformers"
        )
    return data


def _hub_config(source: str) -> Mapping[str, Any]:
    if not may_be_hub_id(source):
        is_word = "/" not in source and not source.startswith((".", "~")) and not source.endswith(".json")
        raise SubjectError(
            f"transformers:{source}: there is no such directory, file or architecture",
            fix=nearest(source, sorted(model_types())) if is_word else "check the path",
        )
    cached = cached_file(source, "config.json")
    if cached is not None:
        return _local_config(cached)
    ask_hub("transformers", source)
    return {}


def not_compiled(head: str, kind: str) -> str | None:
    """Why nothing of this model is compiled; None when something is."""
    if head in COMPILED_WHOLE | SEARCHES | _WALKS or (head in SPEAKS and kind == "speecht5"):
        return None
    return f"compile: no part of {kind} with `head: {head}` can be compiled"
