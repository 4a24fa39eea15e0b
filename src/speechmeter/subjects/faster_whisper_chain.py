"""The stages of a converted Whisper. Imports faster_whisper, so only `prepare` imports this."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ctranslate2
import faster_whisper
import numpy as np
from faster_whisper.audio import pad_or_trim
from faster_whisper.tokenizer import Tokenizer

from speechmeter.core.device import Device
from speechmeter.core.errors import SubjectError
from speechmeter.core.protocols import Prepared
from speechmeter.core.types import Batch, Case, Stage
from speechmeter.subjects.faster_whisper import MOST_TOKENS, compute_type
from speechmeter.subjects.generation import PINNED_TOKENS, SYNTHETIC, pinned_note
from speechmeter.subjects.whisper_windows import WINDOW_S, by_item, cut, pinned_for_item

_DEFAULT_SUPPRESSED = -1
"""Stands for the symbols that the model's own configuration suppresses."""


@dataclass(frozen=True, kw_only=True)
class _Windows:
    """What goes from stage to stage: features or token ids, and how many windows each item has."""

    rows: Any
    counts: tuple[int, ...]


def prepare_chain(case: Case, device: str) -> Prepared:
    """features → model → decode."""
    model = _load(case, device)
    tokenizer = _tokenizer(model, str(case.subject.options.get("language", "en")))
    random = case.subject.options.get("weights") == "random"
    asked = case.axes.get("max_new_tokens")
    pinned = int(asked or PINNED_TOKENS) if random else None
    generate = _model(model, tokenizer, int(case.axes["beam"]), pinned or asked or MOST_TOKENS, pinned=random)
    return Prepared(
        stages=(
            Stage(name="features", fn=_features(model)),
            Stage(
                name="model",
                fn=generate,
                tokens=_tokens,
                pinned_tokens=pinned_for_item(pinned, case) if pinned else None,
            ),
            Stage(name="decode", fn=_decode(tokenizer)),
        ),
        notes=tuple(_notes(model, pinned)),
        data_dependent=not random,
    )


def _load(case: Case, device: str) -> Any:
    logging.getLogger("faster_whisper").setLevel(logging.ERROR)
    parsed = Device.parse(device)
    try:
        model = faster_whisper.WhisperModel(
            case.subject.source,
            device=parsed.kind,
            device_index=parsed.index or 0,
            compute_type=compute_type(case),
            cpu_threads=int(case.axes["threads"]),
            local_files_only=True,
        )
    except Exception as error:  # the engine, the tokenizer and the JSON reader each raise their own
        raise SubjectError(
            f"faster-whisper cannot load {case.subject.source!r}: {error}", fix="convert the model again"
        ) from error
    bands = len(model.feature_extractor.mel_filters)
    if bands != model.model.n_mels:
        raise SubjectError(
            f"{case.subject.source!r} wants {model.model.n_mels} bands where its features have {bands}",
            fix="put the model's preprocessor_config.json into the directory",
        )
    return model


def _tokenizer(model: Any, language: str) -> Any:
    try:
        tokenizer = Tokenizer(model.hf_tokenizer, model.model.is_multilingual, task="transcribe", language=language)
    except ValueError as error:
        raise SubjectError(str(error), fix="mend language") from error
    if None in (*tokenizer.sot_sequence, tokenizer.eot, tokenizer.no_timestamps):
        raise SubjectError("tokenizer.json lacks Whisper's own tokens", fix="take the one of the converted model")
    return tokenizer


def _features(model: Any) -> Callable[[Batch], _Windows]:
    frames = model.feature_extractor.nb_max_frames

    def features(batch: Batch) -> _Windows:
        pieces, counts = cut(batch)
        rows = [pad_or_trim(model.feature_extractor(piece), frames) for piece in pieces]
        return _Windows(rows=np.stack(rows), counts=counts)

    return features


def _model(model: Any, tokenizer: Any, beam: int, tokens: int, *, pinned: bool) -> Callable[[_Windows], _Windows]:
    """Encoder and decoder. A pinned decoder is kept from ending by suppressing the token that ends a text."""
    prompt = model.get_prompt(tokenizer, [], without_timestamps=True)
    # of a maximum length CTranslate2 makes min(length // 2, length - len(prompt) + 1) tokens: this gives `tokens`
    length = max(2 * tokens, tokens + len(prompt) - 1)
    suppressed = [_DEFAULT_SUPPRESSED, *([tokenizer.eot] if pinned else [])]

    def generate(windows: _Windows) -> _Windows:
        encoded = model.encode(windows.rows)
        results = model.model.generate(
            encoded,
            [prompt] * len(windows.rows),
            beam_size=beam,
            max_length=length,
            suppress_tokens=suppressed,
        )
        return _Windows(rows=[result.sequences_ids[0] for result in results], counts=windows.counts)

    return generate


def _decode(tokenizer: Any) -> Callable[[_Windows], list[str]]:
    def decode(windows: _Windows) -> list[str]:
        texts = [tokenizer.decode(ids).strip() for ids in windows.rows]
        return [" ".join(parts) for parts in by_item(texts, windows.counts)]

    return decode


def _tokens(made: _Windows) -> int:
    return sum(len(ids) for ids in made.rows)


def _notes(model: Any, pinned: int | None) -> list[str]:
    versions = f"faster-whisper {faster_whisper.__version__}, CTranslate2 {ctranslate2.__version__}"
    notes = [f"{versions}, {model.model.compute_type}", f"windows of {WINDOW_S} s, no timestamps, one temperature"]
    return [*notes, *([SYNTHETIC, pinned_note(pinned)] if pinned else [])]
