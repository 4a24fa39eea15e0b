"""Speech and translation models of transformers: a hub id, a local directory, a config file, or an architecture.

A source without weights (a config file, an architecture, a directory with `config.json` alone) is built with random
weights: same cost, no meaning, and the record says so. Without tokenizer files the output is token ids.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from speechmeter.core import plugins, protocols
from speechmeter.core.axes import BEAM, MAX_LEN_A, MAX_LEN_B, MAX_NEW_TOKENS, MIN_NEW_TOKENS, QUANTIZE, Axis, Option
from speechmeter.core.errors import SubjectError
from speechmeter.core.protocols import Installed, Prepared
from speechmeter.core.types import Case
from speechmeter.subjects.common import WEIGHTS, installed, torch_quantizing
from speechmeter.subjects.transformers import catalogue
from speechmeter.subjects.transformers.catalogue import FRAMES, HEADS, NEEDS_VOCODER, SOUND, TEXT
from speechmeter.subjects.transformers.compiling import not_compiled
from speechmeter.subjects.transformers.lengths import contradiction
from speechmeter.subjects.transformers.sources import is_hub_id, read_config

_FED = {"audio": SOUND, "text": TEXT, "features": FRAMES}
_FEEDS = {SOUND: protocols.SOUND, TEXT: protocols.TEXT, FRAMES: protocols.FEATURES}
_MUST_FEED = {
    TEXT: ("takes text", "add `text:` to the plan, for example `text: {vocabulary: 1000}`"),
    SOUND: ("takes sound", "name it with `audio:`, and drop `text:` and `features:`"),
    FRAMES: ("takes spectrograms", "add `features:` to the plan, for example `features: {bands: 80}`"),
}
_FLOAT32_ONLY = "fastspeech2_conformer"
_SET_BY_AXES = {
    "num_beams": "beam",
    "max_new_tokens": "max_new_tokens",
    "min_new_tokens": "min_new_tokens",
    "max_length": "max_new_tokens",
    "do_sample": "",
}


class TransformersSubject:
    """`transformers:SOURCE`: features → copy → model → decode, and a vocoder where there is one."""

    summary = "speech and translation models of transformers: a hub id, a directory, a config.json, or an architecture"
    axes: tuple[Axis, ...] = (
        BEAM,
        MAX_LEN_A,
        MAX_LEN_B,
        MIN_NEW_TOKENS,
        MAX_NEW_TOKENS,
        QUANTIZE,
    )
    options = (
        Option(name="config", kind=dict, default={}, help="changed configuration values, such as {hidden_size: 256}"),
        Option(name="head", kind=str, choices=tuple(HEADS), help="what the model is used for; absent: its usual task"),
        WEIGHTS,
        Option(name="vocoder", kind=str, help="of a model that speaks in spectrograms: `random`, or a source of one"),
        Option(name="clusters", kind=int, default=1000, minimum=1, help="units that the head `units` chooses from"),
        Option(name="generate", kind=dict, default={}, help="for the library's generate(), such as {language: en}"),
        Option(name="stand_in_for", kind=dict, default={}, help="files that this model replaces, such as {path: b.pt}"),
    )
    runs_code = False
    takes = (protocols.SOUND, protocols.TEXT, protocols.FEATURES)

    def installed(self) -> Installed:
        """Needs torch and transformers."""
        return installed("transformers", "torch", extra="transformers")

    def check(self, case: Case) -> None:
        """The source must exist and have what the head needs; it is looked up without importing transformers."""
        if not case.subject.source:
            raise SubjectError("transformers: names no model", fix="for example transformers:wav2vec2")
        _check_options(case.subject.options)
        if (wrong := contradiction(case.axes)) is not None:
            raise SubjectError(wrong, fix="keep one of them")
        config = read_config(case.subject.source)
        if "model_type" in config:  # the hub's files are not looked at beforehand
            _check_use(case, str(config["model_type"]), head_of(case, config))
        vocoder = case.subject.options.get("vocoder")
        if vocoder not in (None, "random"):
            read_config(vocoder)

    def unavailable(self, case: Case) -> str | None:
        """What torch or the library cannot do here: only loading can tell the rest."""
        reason = torch_quantizing(case)
        if reason is not None or _as_usual(case):
            return reason
        kind, head = _known_use(case)
        if case.axes["compile"] and head is not None and (reason := not_compiled(head, kind)) is not None:
            return reason
        if case.axes["dtype"] != "float32" and kind.startswith(_FLOAT32_ONLY):
            return f"{kind} runs in float32 only: transformers stretches its frames in that format"
        return None

    def prepare(self, case: Case, device: str) -> Prepared:
        """Load or build the model and what stands before and behind it."""
        if not is_hub_id(case.subject.source):  # the library would ask the hub for every file it does not find
            os.environ["HF_HUB_OFFLINE"] = "1"
        from speechmeter.subjects.transformers.chain import prepare_chain

        return prepare_chain(case, device)


def head_of(case: Case, config: Mapping[str, Any]) -> str | None:
    """The head that the plan names, else the natural one of the architecture for what it is fed."""
    named = case.subject.options.get("head")
    if named is not None:
        return str(named)
    fed = TEXT if case.workload.plugin == "cascade" else _FED.get(case.workload.plugin)
    return catalogue.natural_head(str(config["model_type"]), config.get("architectures") or (), fed)


def _as_usual(case: Case) -> bool:
    return not case.axes["compile"] and case.axes["dtype"] == "float32"


def _known_use(case: Case) -> tuple[str, str | None]:
    """Model type and head as far as they can be told beforehand."""
    try:
        config = read_config(case.subject.source)
    except SubjectError:  # `check` says it
        return "", None
    return (str(config["model_type"]), head_of(case, config)) if "model_type" in config else ("", None)


def _check_options(options: Mapping[str, Any]) -> None:
    for key in options.get("generate", {}):
        if key in _SET_BY_AXES:
            axis = _SET_BY_AXES[key]
            fix = f"use the axis {axis}" if axis else "leave it out: nothing is sampled"
            raise SubjectError(f"generate: {key} cannot stand here", fix=fix)
    original = options.get("stand_in_for", {})
    if not all(isinstance(part, str) for part in (*original, *original.values())):
        raise SubjectError("stand_in_for takes a mapping of names", fix="for example stand_in_for: {path: best.pt}")


def _check_use(case: Case, model_type: str, head: str | None) -> None:
    if catalogue.is_prompted(model_type):
        raise SubjectError(
            f"{model_type} takes a prompt of text and sound together, which is not made here",
            fix="wrap it with python:",
        )
    has = ", ".join(catalogue.heads_of(model_type))
    if head is None or not has:
        raise SubjectError(
            f"{model_type} is no speech or translation model that is run here",
            fix="for example whisper, marian, vits or encodec",
        )
    if catalogue.class_name(head, model_type) is None:
        raise SubjectError(f"{model_type} has no class for the head {head!r}", fix=f"it has: {has}")
    if model_type in NEEDS_VOCODER and head in ("tts", "s2st") and "vocoder" not in case.subject.options:
        raise SubjectError(
            f"{model_type} speaks in spectrograms and needs a vocoder",
            fix="add `vocoder: random`, or the directory of one",
        )
    if model_type == "speecht5" and head in ("tts", "s2st"):
        _check_threshold(case.subject.options.get("generate", {}))
    _check_fed(case, model_type, head)


def _check_threshold(given: Mapping[str, Any]) -> None:
    """SpeechT5 makes frames until the probability of an end is above a threshold, and has nothing else to set."""
    value = given.get("threshold", 0.5)
    if set(given) - {"threshold"} or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise SubjectError(
            "speecht5 takes `threshold` from 0 to 1 under generate, and nothing else",
            fix="for example generate: {threshold: 0.5}",
        )


def _check_fed(case: Case, model_type: str, head: str) -> None:
    """What the workload feeds must be what the model takes, or features that may be fed past its front-end."""
    fed, wanted = plugins.fed_by(case), catalogue.takes(head, model_type)
    if not fed.kinds or _FEEDS[wanted] in fed.kinds:
        return
    if protocols.FEATURES not in fed.kinds or wanted != SOUND:
        what, fix = _MUST_FEED[wanted]
        raise SubjectError(f"this model {what} (head {head!r})", fix=fix)
    config = {**read_config(case.subject.source), **case.subject.options.get("config", {})}
    bands = catalogue.feature_bands(model_type, config)
    if bands is None:
        raise SubjectError(
            f"{model_type} hears sound through a front-end of its own, and takes no features (head {head!r})",
            fix="feed it sound with `audio:` or `data:`; speech_to_text is a model that takes features",
        )
    if fed.bands is not None and fed.bands != bands:
        raise SubjectError(
            f"{model_type} takes features of {bands} bands, and `{case.workload.plugin}:` feeds {fed.bands}",
            fix=f"feed it {bands} bands",
        )
