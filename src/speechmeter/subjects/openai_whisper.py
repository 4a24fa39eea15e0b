"""OpenAI's own Whisper: `openai-whisper:SIZE` or `openai-whisper:FILE.pt`.

A size is built from its published dimensions with random weights, a checkpoint is loaded. Decoding is the library's:
greedy or beam search in windows of 30 s, without timestamps and without trying again at a higher temperature.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from speechmeter.core.axes import BEAM, MAX_NEW_TOKENS
from speechmeter.core.errors import SubjectError
from speechmeter.core.plugins import nearest
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

SIZES = {
    "tiny": (384, 6, 4),
    "base": (512, 8, 6),
    "small": (768, 12, 12),
    "medium": (1024, 16, 24),
    "large-v2": (1280, 20, 32),
    "large-v3": (1280, 20, 32),
}
"""Width, heads and layers of the multilingual models, encoder and decoder alike."""
MOST_TOKENS = 444
"""The 448 positions of the decoder less the four tokens that every text begins with."""


class OpenAIWhisperSubject:
    """`openai-whisper:SOURCE`: features → copy → model → decode."""

    summary = "OpenAI's Whisper: a size with random weights (openai-whisper:tiny) or a checkpoint file"
    axes = (BEAM, MAX_NEW_TOKENS)
    options = (LANGUAGE, WEIGHTS)
    runs_code = False
    takes = (SOUND,)

    def installed(self) -> Installed:
        """Needs openai-whisper; another package called whisper is not it."""
        return installed("whisper", "tiktoken", "torch", extra="openai-whisper", distribution="openai-whisper")

    def check(self, case: Case) -> None:
        """The source must be a size or an existing file; nothing is downloaded."""
        source = case.subject.source
        if source not in SIZES and not Path(source).is_file():
            looks_like_file = "/" in source or source.endswith(".pt")
            fix = "use a checkpoint file that exists" if looks_like_file else nearest(source, [*SIZES])
            raise SubjectError(f"openai-whisper: {source!r} is neither a model size, such as tiny, nor a file", fix=fix)

    def unavailable(self, case: Case) -> str | None:
        """The library has two number formats and cannot be compiled."""
        dtype, on_cuda = case.axes.dtype, case.device.is_cuda
        if dtype != "float32" and not (dtype == "float16" and on_cuda):
            return f"openai-whisper runs in float32, and on CUDA also in float16, but not in {dtype} on {case.device}"
        if case.axes.compile:
            return "torch.compile does not work with openai-whisper, because it sets hooks in every call"
        if (case.axes.get("max_new_tokens") or 1) > MOST_TOKENS:
            return f"Whisper generates at most {MOST_TOKENS} tokens in one window"
        return None

    def prepare(self, case: Case, device: str) -> Prepared:
        """Build or load the model."""
        import whisper

        from speechmeter.subjects import torch_runtime as runtime

        dtype = runtime.configure(case)
        random = case.subject.source in SIZES or case.subject.options.get("weights") == "random"
        model = _model(case.subject.source, device)
        pinned = int(case.axes.get("max_new_tokens") or PINNED_TOKENS) if random else None
        options = _options(case, model, pinned)
        notes = [f"openai-whisper {whisper.__version__}", f"windows of {WINDOW_S} s, no timestamps, one temperature"]
        if options.beam_size:
            notes.append(
                "beam search decodes one window after another, because the library does not support it for a batch"
            )
        if options.fp16:
            notes.append("as in the library, weights stay in float32 and are cast in every call")
        if pinned:
            notes += [SYNTHETIC, pinned_note(pinned)]

        def copy(windows: Windows) -> Windows:
            return replace(windows, rows=windows.rows.to(device=device, dtype=dtype))

        def decode(windows: Windows) -> list[str]:
            return [" ".join(result.text for result in results) for results in by_item(windows.rows, windows.counts)]

        return Prepared(
            stages=(
                Stage(name="features", fn=_features(model.dims.n_mels)),
                Stage(name="copy", fn=copy),
                Stage(
                    name="model",
                    fn=_decoding(model, options),
                    modules={"model": model},
                    tokens=lambda made: sum(len(result.tokens) for result in made.rows),
                    pinned_tokens=pinned_for_item(pinned, case),
                ),
                Stage(name="decode", fn=decode),
            ),
            modules={"model": model},
            sync=runtime.sync_for(device),
            notes=tuple(notes),
            data_dependent=not random,
        )


def _model(source: str, device: str) -> Any:
    import torch
    import whisper

    if source not in SIZES:
        try:
            return whisper.load_model(source, device=device).eval()
        except Exception as error:  # a file that is no checkpoint fails in torch, in pickle or by a missing key
            raise SubjectError(
                f"openai-whisper cannot load {source!r}: {type(error).__name__}: {error}",
                fix="use a checkpoint of openai-whisper",
            ) from error
    width, heads, layers = SIZES[source]
    newest = source == "large-v3"
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
    torch.nn.init.normal_(model.decoder.positional_embedding, std=0.01)  # the library leaves it uninitialised
    return model.eval().to(device)


def _options(case: Case, model: Any, pinned: int | None) -> Any:
    """How to decode. A pinned decoder is kept from ending by suppressing the token that ends a text."""
    import whisper
    from whisper.tokenizer import get_tokenizer

    beam, language = int(case.axes["beam"]), str(case.subject.options.get("language", LANGUAGE.default))
    options = whisper.DecodingOptions(
        language=language,
        without_timestamps=True,
        beam_size=beam if beam > 1 else None,
        sample_len=pinned or case.axes.get("max_new_tokens"),
        fp16=case.axes.dtype == "float16",
    )
    try:
        tokenizer = get_tokenizer(model.is_multilingual, num_languages=model.num_languages, language=language)
    except ValueError as error:
        raise SubjectError(f"openai-whisper: {error}", key="language", fix="use a language code such as en") from error
    return replace(options, suppress_tokens=[DEFAULT_SUPPRESSED, tokenizer.eot]) if pinned else options


def _features(bands: int) -> Callable[[Batch], Windows]:
    import torch
    import whisper

    def features(batch: Batch) -> Windows:
        pieces = cut(batch)
        rows = [whisper.log_mel_spectrogram(whisper.pad_or_trim(piece), bands) for piece in pieces.rows]
        return replace(pieces, rows=torch.stack(rows))

    return features


def _decoding(model: Any, options: Any) -> Callable[[Windows], Windows]:
    import whisper

    def together(windows: Windows) -> Windows:
        return replace(windows, rows=whisper.decode(model, windows.rows, options))

    def one_by_one(windows: Windows) -> Windows:
        return replace(windows, rows=[whisper.decode(model, row, options) for row in windows.rows])

    # its beam search repeats the tokens for each beam but not the sound, so it only works for one window (20250625)
    return one_by_one if options.beam_size else together
