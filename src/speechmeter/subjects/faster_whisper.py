"""Whisper under CTranslate2: `faster-whisper:DIR`, a directory that CTranslate2's converter wrote.

Greedy or beam search in windows of 30 s, without timestamps and without trying again at a higher temperature. A
directory does not say whether its weights were trained: the option `weights: random` says that they were not.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from speechmeter.core.axes import BEAM, MAX_NEW_TOKENS, NONE, QUANTIZE
from speechmeter.core.device import Device
from speechmeter.core.errors import SubjectError
from speechmeter.core.protocols import SOUND, Installed, Prepared
from speechmeter.core.types import Batch, Case, Stage
from speechmeter.subjects.common import PINNED_TOKENS, SYNTHETIC, WEIGHTS, installed, pinned_note
from speechmeter.subjects.whisper_windows import (
    DEFAULT_SUPPRESSED,
    LANGUAGE,
    WINDOW_S,
    Windows,
    by_item,
    cut,
    pinned_for_item,
)

MOST_TOKENS = 224
"""CTranslate2 generates no more than half of Whisper's 448 positions."""
_FILES = ("model.bin", "config.json", "tokenizer.json")
_CONVERT = (
    "ct2-transformers-converter --model MODEL --output_dir DIR --copy_files tokenizer.json preprocessor_config.json"
)


class FasterWhisperSubject:
    """`faster-whisper:DIR`: features → model → decode."""

    summary = "Whisper under CTranslate2: faster-whisper:DIR, a converted model with its tokenizer.json"
    axes = (BEAM, MAX_NEW_TOKENS, QUANTIZE)
    options = (LANGUAGE, WEIGHTS)
    runs_code = False
    takes = (SOUND,)

    def installed(self) -> Installed:
        """Needs faster-whisper and its engine."""
        return installed("faster_whisper", "ctranslate2", extra="faster-whisper")

    def check(self, case: Case) -> None:
        """The directory must contain a converted model; nothing is downloaded."""
        path = Path(case.subject.source)
        if not case.subject.source or not path.is_dir():
            raise SubjectError(
                f"faster-whisper: there is no directory {case.subject.source!r}", fix=f"convert a model: {_CONVERT}"
            )
        missing = [name for name in _FILES if not (path / name).is_file()]
        if missing:
            raise SubjectError(f"{str(path)!r} contains no {missing[0]}", fix=f"convert the model again: {_CONVERT}")

    def unavailable(self, case: Case) -> str | None:
        """CTranslate2 knows which number formats the device has."""
        if case.axes.compile:
            return "CTranslate2 has its own kernels: torch.compile does not apply to them"
        if (case.axes.get("max_new_tokens") or 1) > MOST_TOKENS:
            return f"CTranslate2 generates at most {MOST_TOKENS} tokens of a Whisper model in one call"
        wanted, kind = _compute_type(case), case.device.kind
        if wanted == "float32" and case.device.is_cpu:  # always supported: no need to import the engine
            return None
        import ctranslate2

        if case.device.is_cuda and not ctranslate2.get_cuda_device_count():
            return "CTranslate2 finds no CUDA device"
        here = ctranslate2.get_supported_compute_types(kind)
        return (
            None if wanted in here else f"CTranslate2 runs in {', '.join(sorted(here))} on this {kind}, not in {wanted}"
        )

    def prepare(self, case: Case, device: str) -> Prepared:
        """Load the converted model and its tokenizer."""
        import ctranslate2
        import faster_whisper

        model = _load(case, device)
        tokenizer = _tokenizer(model, str(case.subject.options.get("language", LANGUAGE.default)))
        random = case.subject.options.get("weights") == "random"
        asked = case.axes.get("max_new_tokens")
        pinned = int(asked or PINNED_TOKENS) if random else None

        def decode(windows: Windows) -> list[str]:
            texts = [tokenizer.decode(ids).strip() for ids in windows.rows]
            return [" ".join(parts) for parts in by_item(texts, windows.counts)]

        versions = f"faster-whisper {faster_whisper.__version__}, CTranslate2 {ctranslate2.__version__}"
        return Prepared(
            stages=(
                Stage(name="features", fn=_features(model)),
                Stage(
                    name="model",
                    fn=_search(model, tokenizer, int(case.axes["beam"]), pinned or asked or MOST_TOKENS, pinned=random),
                    tokens=lambda made: sum(map(len, made.rows)),
                    pinned_tokens=pinned_for_item(pinned, case),
                ),
                Stage(name="decode", fn=decode),
            ),
            notes=(
                f"{versions}, {model.model.compute_type}",
                f"windows of {WINDOW_S} s, no timestamps, one temperature",
                *([SYNTHETIC, pinned_note(pinned)] if pinned else []),
            ),
            data_dependent=not random,
        )


def _compute_type(case: Case) -> str:
    """What CTranslate2 calls the case's number format."""
    dtype = case.axes.dtype
    return dtype if case.axes["quantize"] == NONE else f"int8_{dtype}"


def _load(case: Case, device: str) -> Any:
    import faster_whisper

    logging.getLogger("faster_whisper").setLevel(logging.ERROR)
    parsed = Device.parse(device)
    try:
        model = faster_whisper.WhisperModel(
            case.subject.source,
            device=parsed.kind,
            device_index=parsed.index or 0,
            compute_type=_compute_type(case),
            cpu_threads=case.axes.threads,
            local_files_only=True,
        )
    except Exception as error:  # the engine, the tokenizer and the JSON reader each raise their own
        raise SubjectError(
            f"faster-whisper cannot load {case.subject.source!r}: {error}", fix=f"convert the model again: {_CONVERT}"
        ) from error
    bands = len(model.feature_extractor.mel_filters)
    if bands != model.model.n_mels:
        raise SubjectError(
            f"{case.subject.source!r} needs features of {model.model.n_mels} bands, and its extractor makes {bands}",
            fix="put the model's preprocessor_config.json into the directory",
        )
    return model


def _tokenizer(model: Any, language: str) -> Any:
    from faster_whisper.tokenizer import Tokenizer

    try:
        tokenizer = Tokenizer(model.hf_tokenizer, model.model.is_multilingual, task="transcribe", language=language)
    except ValueError as error:
        raise SubjectError(str(error), key="language", fix="use a language code such as en") from error
    if None in (*tokenizer.sot_sequence, tokenizer.eot, tokenizer.no_timestamps):
        raise SubjectError("tokenizer.json lacks Whisper's own tokens", fix="copy it from the model that was converted")
    return tokenizer


def _features(model: Any) -> Callable[[Batch], Windows]:
    import numpy as np
    from faster_whisper.audio import pad_or_trim

    frames = model.feature_extractor.nb_max_frames

    def features(batch: Batch) -> Windows:
        pieces = cut(batch)
        rows = [pad_or_trim(model.feature_extractor(piece), frames) for piece in pieces.rows]
        return replace(pieces, rows=np.stack(rows))

    return features


def _search(model: Any, tokenizer: Any, beam: int, tokens: int, *, pinned: bool) -> Callable[[Windows], Windows]:
    """Encoder and decoder. A pinned decoder is kept from ending by suppressing the token that ends a text."""
    prompt = model.get_prompt(tokenizer, [], without_timestamps=True)
    # of a maximum length CTranslate2 makes min(length // 2, length - len(prompt) + 1) tokens: this gives `tokens`
    length = max(2 * tokens, tokens + len(prompt) - 1)
    suppressed = [DEFAULT_SUPPRESSED, *([tokenizer.eot] if pinned else [])]

    def generate(windows: Windows) -> Windows:
        results = model.model.generate(
            model.encode(windows.rows),
            [prompt] * len(windows.rows),
            beam_size=beam,
            max_length=length,
            suppress_tokens=suppressed,
        )
        return replace(windows, rows=[result.sequences_ids[0] for result in results])

    return generate
