"""Speech and translation models of transformers: a hub id, a local directory, a config file, or an architecture.

A source without weights (a config file, an architecture, a directory with `config.json` alone) is built with random
weights: same cost, no meaning, and the record says so. Without tokenizer files the output is token ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from speechmeter.core import plugins, protocols
from speechmeter.core.axes import BEAM, MAX_LEN_A, MAX_LEN_B, MAX_NEW_TOKENS, MIN_NEW_TOKENS, QUANTIZE, Axis, Option
from speechmeter.core.errors import SubjectError
from speechmeter.core.protocols import Installed, Prepared
from speechmeter.core.types import Case
from speechmeter.subjects.common import WEIGHTS, installed, torch_quantizing
from speechmeter.subjects.torchaudio_stand_in import explaining_torchaudio
from speechmeter.subjects.transformers.lengths import check_lengths
from speechmeter.subjects.transformers.sources import (
    CLUSTERS,
    FRAMES,
    HEADS,
    NEEDS_VOCODER,
    SOUND,
    SPEAKS,
    TEXT,
    class_name,
    feature_bands,
    head_of,
    heads_of,
    is_hub_id,
    is_prompted,
    not_compiled,
    read_config,
    takes,
)

_FEEDS = {SOUND: protocols.SOUND, TEXT: protocols.TEXT, FRAMES: protocols.FEATURES}
_MUST_FEED = {
    TEXT: ("takes text", "add `text` to the plan, for example {vocabulary: 1000}"),
    SOUND: ("takes sound", "use `audio` or `data` instead of `text` and `features`"),
    FRAMES: ("takes spectrograms", "add `features` to the plan, for example {bands: 80}"),
}
_PARTS = "speechmeter.subjects.transformers"
_FLOAT32_ONLY = "fastspeech2_conformer"
_SET_BY_AXES = {
    "num_beams": "beam",
    "max_new_tokens": "max_new_tokens",
    "min_new_tokens": "min_new_tokens",
    "max_length": "max_new_tokens",
    "do_sample": "",
}
"""Settings of `generate` that axes decide; nothing is ever sampled."""


class TransformersSubject:
    """`transformers:SOURCE`: features → copy → model → decode, and a vocoder where there is one."""

    summary = "speech and translation models of transformers: a hub id, a directory, a config.json or an architecture"
    axes: tuple[Axis, ...] = (BEAM, MAX_LEN_A, MAX_LEN_B, MIN_NEW_TOKENS, MAX_NEW_TOKENS, QUANTIZE)
    options = (
        Option(name="config", kind=dict, default={}, help="changed configuration values, such as {hidden_size: 256}"),
        Option(
            name="head",
            kind=str,
            choices=tuple(HEADS),
            help="type of model to load, such as ctc or units (default: from the configuration)",
        ),
        WEIGHTS,
        Option(
            name="vocoder", kind=Path, help="for a model that makes spectrograms: random, or the directory of a vocoder"
        ),
        CLUSTERS,
        Option(
            name="generate",
            kind=dict,
            default={},
            help="arguments of generate() of transformers, such as {language: en}",
        ),
        Option(name="stand_in_for", kind=dict, default={}, help="files that this model replaces, such as {path: b.pt}"),
    )
    runs_code = False
    takes = (protocols.SOUND, protocols.TEXT, protocols.FEATURES)

    def installed(self) -> Installed:
        """Needs torch and transformers."""
        return installed("transformers", "torch", extra="transformers")

    def check(self, case: Case) -> None:
        """The source must exist and have what the head needs; it is looked up without importing transformers."""
        source, options = case.subject.source, case.subject.options
        if not source:
            raise SubjectError("transformers: names no model", fix="for example transformers:wav2vec2")
        for key in options.get("generate", {}):
            if key in _SET_BY_AXES:
                axis = _SET_BY_AXES[key]
                fix = f"use the axis `{axis}`" if axis else f"remove {key}, because tokens are never sampled"
                raise SubjectError(f"{key} cannot be set here", key="generate", fix=fix)
        original = options.get("stand_in_for", {})
        if not all(isinstance(part, str) for part in (*original, *original.values())):
            raise SubjectError(
                "stand_in_for must be a mapping of names to file names", fix="for example stand_in_for: {path: best.pt}"
            )
        check_lengths(case.axes)
        config = read_config(source)
        if "model_type" in config:  # the files of a hub id are not downloaded for the check
            _check_use(case, str(config["model_type"]), head_of(case, config))
        vocoder = options.get("vocoder")
        if vocoder not in (None, "random"):
            read_config(vocoder)

    def unavailable(self, case: Case) -> str | None:
        """What torch or the library cannot do here, as far as it is known before loading."""
        reason = torch_quantizing(case)
        is_usual = not case.axes.compile and case.axes.dtype == "float32"
        if reason is not None or is_usual:
            return reason
        try:
            config = read_config(case.subject.source)
        except SubjectError:  # `check` reports it
            return None
        if "model_type" not in config:
            return None
        kind, head = str(config["model_type"]), head_of(case, config)
        if case.axes.compile and head is not None and (reason := not_compiled(head, kind)) is not None:
            return reason
        if case.axes.dtype != "float32" and kind.startswith(_FLOAT32_ONLY):
            return f"{kind} runs in float32 only, because transformers repeats its frames in float32"
        return None

    def libraries(self, case: Case) -> tuple[str, ...]:
        """torch and transformers with the class of the model; what a hub id names is found out when it is loaded."""
        if is_hub_id(case.subject.source):
            return (f"{_PARTS}.stages",)
        config = read_config(case.subject.source)
        head = head_of(case, config) if "model_type" in config else None
        name = None if head is None else class_name(head, str(config["model_type"]))
        return (f"{_PARTS}.local", *((f"transformers:{name}",) if name else ()))

    def prepare(self, case: Case, device: str) -> Prepared:
        """Load or build the model, its feature extractor or tokenizer, and its vocoder."""
        with explaining_torchaudio():  # transformers imports it with every front-end for audio
            stages = import_module(f"{_PARTS}.{'stages' if is_hub_id(case.subject.source) else 'local'}")
            made: Prepared = stages.prepare_chain(case, device)
        return made


def _check_use(case: Case, model_type: str, head: str | None) -> None:
    if is_prompted(model_type):
        raise SubjectError(
            f"{model_type} needs a prompt of text and sound together, which is not supported",
            fix="wrap it in a function and name it with python:file.py:function",
        )
    has = ", ".join(heads_of(model_type))
    if head is None or not has:
        raise SubjectError(
            f"{model_type} is not a speech or translation model that is supported",
            fix="for example whisper, marian, vits or encodec",
        )
    if class_name(head, model_type) is None:
        raise SubjectError(f"{model_type} is not available with `head: {head}`", fix=f"it has: {has}")
    options = case.subject.options
    if model_type in NEEDS_VOCODER and head in SPEAKS and "vocoder" not in options:
        raise SubjectError(
            f"{model_type} makes spectrograms and needs a vocoder",
            fix="add `vocoder: random`, or the directory of one",
        )
    if model_type == "speecht5" and head in SPEAKS:
        _check_threshold(options.get("generate", {}))
    _check_fed(case, model_type, head)


def _check_threshold(given: Mapping[str, Any]) -> None:
    """SpeechT5 makes frames until the probability of an end is above a threshold, and has no other setting."""
    value = given.get("threshold", 0.5)
    if set(given) - {"threshold"} or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise SubjectError(
            "speecht5 takes only a threshold from 0 to 1",
            key="generate",
            fix="for example generate: {threshold: 0.5}",
        )


def _check_fed(case: Case, model_type: str, head: str) -> None:
    """The workload must feed what the model takes, or features that can replace its front-end."""
    fed, wanted = plugins.fed_by(case), takes(head, model_type)
    if not fed.kinds or _FEEDS[wanted] in fed.kinds:
        return
    if protocols.FEATURES not in fed.kinds or wanted != SOUND:
        what, fix = _MUST_FEED[wanted]
        raise SubjectError(f"{model_type} with `head: {head}` {what}", fix=fix)
    config = {**read_config(case.subject.source), **case.subject.options.get("config", {})}
    bands = feature_bands(model_type, config)
    if bands is None:
        raise SubjectError(
            f"{model_type} with `head: {head}` computes features from audio itself and takes no `features`",
            fix="use `audio` or `data`, or a model that takes features, such as speech_to_text",
        )
    if fed.bands is not None and fed.bands != bands:
        raise SubjectError(
            f"{model_type} needs features with {bands} bands, but `{case.workload.plugin}` gives {fed.bands}",
            fix=f"feed {bands} bands",
        )
