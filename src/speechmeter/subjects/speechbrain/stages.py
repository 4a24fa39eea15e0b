"""The stages of SpeechBrain's interfaces. Imports torch and SpeechBrain, so only `prepare` imports this.

An interface's method is split into its parts where that is possible; together they compute what the method does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import numpy as np
import soxr
import torch

from speechmeter.core.protocols import Prepared
from speechmeter.core.types import Batch, Case, Stage
from speechmeter.subjects import torch_runtime as runtime
from speechmeter.subjects.common import RATE
from speechmeter.subjects.speechbrain.loading import Loaded, load

_THRESHOLD = 0.25
"""Cosine similarity from which SpeechBrain says "the same speaker"."""
Heard = tuple[torch.Tensor, torch.Tensor]
"""Waveforms or features (items, …) and their lengths relative to the longest."""


def prepare_chain(case: Case, device: str) -> Prepared:
    """copy → the interface's stages; in front a conversion, not clocked, for models of another sample rate."""
    runtime.configure(case)
    loaded = load(case, device)
    rate = int(getattr(loaded.model.hparams, "sample_rate", None) or RATE)

    def copy(batch: Batch) -> Heard:
        waves = torch.from_numpy(batch.data).to(device)
        return waves, torch.tensor(batch.lengths, dtype=torch.float32).div(batch.data.shape[1]).to(device)

    stages = [*_resampling(rate), Stage(name="copy", fn=copy), *_CHAINS[loaded.kind](loaded)]
    searches = any(stage.name == "search" for stage in stages)
    beam_of_ctc = loaded.kind == "EncoderASR" and not _is_greedy(loaded)
    return Prepared(
        stages=tuple(stages),
        modules=loaded.modules,
        sync=runtime.sync_for(device),
        notes=tuple(_notes(loaded, rate)),
        data_dependent=(searches and not loaded.pinned) or beam_of_ctc,
    )


def _resampling(rate: int) -> list[Stage]:
    if rate == RATE:
        return []

    def resample(batch: Batch) -> Batch:
        waves = [soxr.resample(wave, RATE, rate) for wave in batch.data]
        lengths = tuple(min(round(length * rate / RATE), len(waves[0])) for length in batch.lengths)
        return replace(batch, data=np.stack(waves), lengths=lengths)

    return [Stage(name="resample", fn=resample, clocked=False)]


def _stage(name: str, fn: Callable[[Any], Any], loaded: Loaded, *modules: str) -> Stage:
    named = {module: loaded.modules[module] for module in modules if module in loaded.modules}
    return Stage(name=name, fn=runtime.inference(fn), modules=named)


def _features(loaded: Loaded) -> Stage:
    mods = loaded.model.mods

    def features(heard: Heard) -> Heard:
        waves, lengths = heard
        return mods.mean_var_norm(mods.compute_features(waves), lengths), lengths

    return _stage("features", features, loaded, "compute_features", "mean_var_norm")


def _classifier(loaded: Loaded) -> list[Stage]:
    mods = loaded.model.mods
    labels: Any = getattr(loaded.model.hparams, "label_encoder", None)

    def model(heard: Heard) -> torch.Tensor:
        return mods.classifier(mods.embedding_model(*heard)).squeeze(1)

    def decode(scores: torch.Tensor) -> list[Any]:
        best = scores.argmax(dim=-1)
        named: list[Any] = best.tolist() if _empty(labels) else labels.decode_torch(best)
        return named

    return [
        _features(loaded),
        _stage("model", model, loaded, "embedding_model", "classifier"),
        _stage("decode", decode, loaded),
    ]


def _speaker(loaded: Loaded) -> list[Stage]:
    mods = loaded.model.mods

    def model(heard: Heard) -> torch.Tensor:
        return mods.embedding_model(*heard)

    def decode(embeddings: torch.Tensor) -> torch.Tensor:
        return torch.gt(loaded.model.similarity(embeddings, embeddings.roll(1, dims=0)), _THRESHOLD)

    return [
        _features(loaded),
        _stage("model", model, loaded, "embedding_model"),
        _stage("decode", decode, loaded),
    ]


def _activity(loaded: Loaded) -> list[Stage]:
    mods = loaded.model.mods

    def model(heard: Heard) -> torch.Tensor:
        hidden, _ = mods.rnn(mods.cnn(heard[0]).flatten(start_dim=2))
        return torch.sigmoid(mods.dnn(hidden))

    def decode(speech: torch.Tensor) -> list[list[list[float]]]:
        flags = loaded.model.apply_threshold(speech).float()
        return [loaded.model.get_boundaries(item).tolist() for item in flags.split(1)]

    return [
        _features(loaded),
        _stage("model", model, loaded, "cnn", "rnn", "dnn"),
        _stage("decode", decode, loaded),
    ]


def _separation(loaded: Loaded) -> list[Stage]:
    def model(heard: Heard) -> Any:
        return loaded.model.separate_batch(heard[0])

    return [_stage("model", model, loaded, "encoder", "masknet", "decoder")]


def _enhancement(loaded: Loaded) -> list[Stage]:
    from speechbrain.utils.callchains import lengths_arg_exists

    network, resynth = loaded.model.mods.enhance_model, loaded.model.hparams.resynth
    takes_lengths = lengths_arg_exists(loaded.modules["enhance_model"].forward)

    def features(heard: Heard) -> tuple[Heard, torch.Tensor]:
        return heard, loaded.model.compute_features(heard[0])

    def model(state: tuple[Heard, torch.Tensor]) -> tuple[Heard, torch.Tensor]:
        heard, noisy = state
        mask = network(noisy, lengths=heard[1]) if takes_lengths else network(noisy)
        return heard, torch.mul(mask, noisy)

    def decode(state: tuple[Heard, torch.Tensor]) -> Any:
        heard, enhanced = state
        return resynth(torch.expm1(enhanced), heard[0])

    return [
        _stage("features", features, loaded),
        _stage("model", model, loaded, "enhance_model"),
        _stage("decode", decode, loaded),
    ]


def _snr(loaded: Loaded) -> list[Stage]:
    def sources(heard: Heard) -> tuple[torch.Tensor, torch.Tensor]:
        return heard[0], torch.stack([heard[0] / 2, heard[0] / 2], dim=-1)

    def model(state: tuple[torch.Tensor, torch.Tensor]) -> Any:
        return loaded.model.estimate_batch(*state)

    return [
        Stage(name="sources", fn=runtime.inference(sources), clocked=False),
        _stage("model", model, loaded, "encoder", "encoder_out"),
    ]


def _encoder(loaded: Loaded, *modules: str) -> Stage:
    def model(heard: Heard) -> Heard:
        return loaded.model.encode_batch(*heard), heard[1]

    return _stage("model", model, loaded, *modules)


def _ctc(loaded: Loaded) -> list[Stage]:
    model = loaded.model
    greedy, tokenizer = _is_greedy(loaded), model.tokenizer

    def decode(encoded: Heard) -> list[Any]:
        found: list[Any] = model.decoding_function(*encoded)
        if not greedy:
            return [hypotheses[0].text for hypotheses in found]
        return _texts(found, tokenizer)

    return [_encoder(loaded, "encoder"), _stage("decode", decode, loaded)]


def _is_greedy(loaded: Loaded) -> bool:
    """Whether an EncoderASR decodes without a beam: SpeechBrain then wraps its greedy function in a partial."""
    return isinstance(loaded.model.hparams.decoding_function, functools.partial)


def _attention(loaded: Loaded) -> list[Stage]:
    model = loaded.model

    def search(encoded: Heard) -> list[list[int]]:
        inputs = encoded[:1] if model.transducer_beam_search else encoded
        hypotheses: list[list[int]] = model.mods.decoder(*inputs)[0]
        return hypotheses

    return _searching(loaded, _encoder(loaded, "encoder", "transformer"), search, "decoder")


def _understanding(loaded: Loaded) -> list[Stage]:
    def search(encoded: Heard) -> list[list[int]]:
        hypotheses: list[list[int]] = loaded.model.mods.beam_searcher(*encoded)[0]
        return hypotheses

    return _searching(loaded, _encoder(loaded, "asr_encoder", "slu_enc"), search, "beam_searcher")


def _searching(loaded: Loaded, encoder: Stage, search: Callable[[Heard], list[list[int]]], name: str) -> list[Stage]:
    """The search runs the decoder network, so the boundary `model` includes it; `decode` turns tokens into text."""
    decode = functools.partial(_texts, tokenizer=loaded.model.tokenizer)
    searching = replace(_stage("search", search, loaded, name), tokens=lambda hypotheses: sum(map(len, hypotheses)))
    return [encoder, searching, _stage("decode", decode, loaded)]


_CHAINS: Mapping[str, Callable[[Loaded], list[Stage]]] = {
    "EncoderASR": _ctc,
    "EncoderDecoderASR": _attention,
    "EndToEndSLU": _understanding,
    "EncoderClassifier": _classifier,
    "SpeakerRecognition": _speaker,
    "VAD": _activity,
    "SepformerSeparation": _separation,
    "SpectralMaskEnhancement": _enhancement,
    "SNREstimator": _snr,
}


def _texts(sequences: Sequence[Any], tokenizer: Any) -> list[Any]:
    """One text an item; token ids where there is no tokenizer."""
    if _empty(tokenizer):
        return [list(map(int, ids)) for ids in sequences]
    if hasattr(tokenizer, "decode_ndim"):  # SpeechBrain's own text encoders
        return ["".join(tokenizer.decode_ndim(ids)) for ids in sequences]
    return [tokenizer.decode_ids(ids) for ids in sequences]


def _empty(labels: Any) -> bool:
    """Whether a tokenizer or label encoder is missing or was never filled."""
    if hasattr(labels, "get_piece_size"):
        return bool(labels.get_piece_size() == 0)
    return labels is None or not getattr(labels, "ind2lab", True)


def _notes(loaded: Loaded, rate: int) -> list[str]:
    notes = [f"speechbrain {version('speechbrain')}, {loaded.kind}", *loaded.notes]
    if rate != RATE:
        notes.append(f"input converted from {RATE} to {rate} Hz; the conversion is not timed")
    if hasattr(loaded.model, "tokenizer") and _empty(loaded.model.tokenizer):
        notes.append("no tokenizer files: output is token ids")
    if loaded.kind == "SpeakerRecognition":
        notes.append("each item is compared with the next one in the batch, so one embedding is computed per item")
    if loaded.kind == "SNREstimator":
        notes.append("the sources to rate are halves of the input; splitting it is not timed")
    return notes
