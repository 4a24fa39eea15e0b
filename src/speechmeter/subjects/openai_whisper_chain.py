"""The stages of OpenAI's Whisper. Imports torch and whisper, so only `prepare` imports this."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
import whisper
from whisper.tokenizer import get_tokenizer

from speechmeter.core.errors import SubjectError
from speechmeter.core.protocols import Prepared
from speechmeter.core.types import Batch, Case, Stage
from speechmeter.subjects import torch_runtime as runtime
from speechmeter.subjects.generation import PINNED_TOKENS, SYNTHETIC, pinned_note
from speechmeter.subjects.openai_whisper import SIZES
from speechmeter.subjects.whisper_windows import WINDOW_S, by_item, cut, pinned_for_item

_DEFAULT_SUPPRESSED = -1
"""Stands for the symbols that the library suppresses by default."""


@dataclass(frozen=True, kw_only=True)
class _Windows:
    """What goes from stage to stage: features or results, and how many windows each item has."""

    rows: Any
    counts: tuple[int, ...]


def prepare_chain(case: Case, device: str) -> Prepared:
    """features → copy → model → decode."""
    dtype = runtime.configure(case)
    random = case.subject.source in SIZES or case.subject.options.get("weights") == "random"
    model = _model(case.subject.source, device)
    pinned = int(case.axes.get("max_new_tokens") or PINNED_TOKENS) if random else None
    options = _options(case, model, pinned)
    return Prepared(
        stages=(
            Stage(name="features", fn=_features(model.dims.n_mels)),
            Stage(name="copy", fn=_copy(device, dtype)),
            Stage(
                name="model",
                fn=_decoding(model, options),
                modules={"model": model},
                tokens=_tokens,
                pinned_tokens=pinned_for_item(pinned, case) if pinned else None,
            ),
            Stage(name="decode", fn=_texts),
        ),
        modules={"model": model},
        sync=runtime.sync_for(device),
        notes=tuple(_notes(options, pinned)),
        data_dependent=not random,
    )


def _model(source: str, device: str) -> Any:
    if source in SIZES:
        return _random(source).eval().to(device)
    try:
        return whisper.load_model(source, device=device).eval()
    except Exception as error:  # a file that is no checkpoint fails in torch, in pickle or by a missing key
        raise SubjectError(
            f"openai-whisper cannot load {source!r}: {type(error).__name__}: {error}", fix="name one of its checkpoints"
        ) from error


def _random(size: str) -> Any:
    width, heads, layers = SIZES[size]
    newest = size == "large-v3"
    dims = whisper.ModelDimensions(
        n_mels=128 if newest else 80,
        n_audio_ctx=1500,
        n_audio_state=width,
        n_audio_head=heads,
        n_audio_layer=layers,
        n_vocab=51866 if newest else 51865,
        n_text_ctx=448,
        n_text_state=width,
        n_text_head=heads,
        n_text_layer=layers,
    )
    model = whisper.model.Whisper(dims)
    torch.nn.init.normal_(model.decoder.positional_embedding, std=0.01)  # the library leaves whatever memory held
    return model


def _options(case: Case, model: Any, pinned: int | None) -> Any:
    """How to decode. A pinned decoder is kept from ending by suppressing the token that ends a text."""
    beam, language = int(case.axes["beam"]), str(case.subject.options.get("language", "en"))
    options = whisper.DecodingOptions(
        language=language,
        without_timestamps=True,
        beam_size=beam if beam > 1 else None,
        sample_len=pinned or case.axes.get("max_new_tokens"),
        fp16=case.axes["dtype"] == "float16",
    )
    try:
        tokenizer = get_tokenizer(model.is_multilingual, num_languages=model.num_languages, language=language)
    except ValueError as error:
        raise SubjectError(f"openai-whisper: {error}", fix="mend language") from error
    return replace(options, suppress_tokens=[_DEFAULT_SUPPRESSED, tokenizer.eot]) if pinned else options


def _features(bands: int) -> Callable[[Batch], _Windows]:
    def features(batch: Batch) -> _Windows:
        pieces, counts = cut(batch)
        rows = [whisper.log_mel_spectrogram(whisper.pad_or_trim(piece), bands) for piece in pieces]
        return _Windows(rows=torch.stack(rows), counts=counts)

    return features


def _copy(device: str, dtype: torch.dtype) -> Callable[[_Windows], _Windows]:
    def copy(windows: _Windows) -> _Windows:
        return replace(windows, rows=windows.rows.to(device=device, dtype=dtype))

    return copy


def _decoding(model: Any, options: Any) -> Callable[[_Windows], _Windows]:
    def together(windows: _Windows) -> _Windows:
        return replace(windows, rows=whisper.decode(model, windows.rows, options))

    def one_by_one(windows: _Windows) -> _Windows:
        return replace(windows, rows=[whisper.decode(model, row, options) for row in windows.rows])

    # its beam search repeats the tokens for each beam but not the sound, which fits one window alone (20250625)
    return one_by_one if options.beam_size else together


def _texts(windows: _Windows) -> list[str]:
    return [" ".join(result.text for result in results) for results in by_item(windows.rows, windows.counts)]


def _tokens(made: _Windows) -> int:
    return sum(len(result.tokens) for result in made.rows)


def _notes(options: Any, pinned: int | None) -> list[str]:
    notes = [f"openai-whisper {whisper.__version__}", f"windows of {WINDOW_S} s, no timestamps, one temperature"]
    if options.beam_size:
        notes.append("beam search takes one window after the other: the library has none for batches")
    if options.fp16:
        notes.append("weights stay in float32 and are cast in every call, as the library does it")
    return [*notes, *([SYNTHETIC, pinned_note(pinned)] if pinned else [])]
