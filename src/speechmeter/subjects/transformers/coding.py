"""Heads that put out sound from codes: vocoders, and codecs, which make the codes too. Imports torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from speechmeter.core.errors import SubjectError
from speechmeter.core.types import Batch, Stage
from speechmeter.subjects import torch_runtime as runtime
from speechmeter.subjects.transformers import pinning
from speechmeter.subjects.transformers.catalogue import CODECS
from speechmeter.subjects.transformers.loading import Loaded
from speechmeter.subjects.transformers.reading import Ids, padded
from speechmeter.subjects.transformers.sound import Sound, rate_of, spoken_stage, waves_of

Inputs = Mapping[str, Any]


def vocoder_stages(loaded: Loaded) -> list[Stage]:
    """From units or frames of a spectrogram to sound."""
    if loaded.random and loaded.kind.startswith("seamless"):
        pinning.pin_log1p_durations(loaded.model.dur_predictor, 1)
    make = _maker(loaded, runtime.compiled(loaded.model, loaded.case))

    def model(inputs: Inputs) -> Sound:
        waves = waves_of(make(inputs))
        true = inputs["lengths"]
        return waves, [length * waves.shape[-1] // int(max(true)) for length in true]

    return [
        Stage(name="model", fn=runtime.inference(model), modules={"model": loaded.model}),
        spoken_stage(rate_of(loaded.config)),
    ]


def _maker(loaded: Loaded, call: Callable[..., Any]) -> Callable[[Inputs], Any]:
    if loaded.kind == "univnet":
        return lambda inputs: call(input_features=inputs["frames"]).waveforms
    if loaded.kind.startswith("seamless"):
        return lambda inputs: call(inputs["input_ids"], *_first_voice(inputs["input_ids"]))[0]
    if loaded.kind in CODECS:
        return lambda inputs: _decoded(loaded, _codes(loaded, inputs["input_ids"]))
    return lambda inputs: call(inputs["frames"])


def vocoder_input(loaded: Loaded) -> Callable[[Batch], dict[str, Any]]:
    """A stage: frames as they are, ids modulo the codebook."""
    config = loaded.config
    size = getattr(config, "unit_hifi_gan_vocab_size", None) or getattr(config, "codebook_size", 0)
    bands = getattr(config, "model_in_dim", None) or getattr(config, "num_mel_bins", None)

    def features(batch: Batch) -> dict[str, Any]:
        if size:
            ids = Ids(None, size)
            return {**padded([ids.of(item) for item in batch.data], 0), "lengths": list(batch.lengths)}
        if batch.data.shape[-1] != bands:
            raise SubjectError(
                f"this vocoder takes {bands} bands, not {batch.data.shape[-1]}", fix=f"features: {{bands: {bands}}}"
            )
        return {"frames": torch.from_numpy(batch.data), "lengths": list(batch.lengths)}

    return features


def codec_stages(loaded: Loaded) -> list[Stage]:
    """Sound to codes, and back to sound."""

    def model(inputs: Inputs) -> Any:
        masked = {} if loaded.kind == "dac" else {"padding_mask": inputs["padding_mask"]}
        codes = loaded.model.encode(inputs["input_values"], **masked).audio_codes
        return codes, inputs["padding_mask"].sum(-1).tolist()

    def back(made: tuple[Any, Sequence[int]]) -> Sound:
        codes, lengths = made
        return waves_of(_decoded(loaded, codes)), lengths

    return [
        Stage(
            name="model",
            fn=runtime.inference(model),
            modules={"model": loaded.model},
            tokens=lambda made: int(made[0].numel()),
        ),
        Stage(name="vocoder", fn=runtime.inference(back), modules={"model": loaded.model}),
        spoken_stage(rate_of(loaded.config)),
    ]


def _decoded(loaded: Loaded, codes: Any) -> Any:
    if loaded.kind == "encodec":
        return loaded.model.decode(codes, [None] * codes.shape[0])[0]
    return loaded.model.decode(audio_codes=codes)[0]


def _codes(loaded: Loaded, ids: Any) -> Any:
    """One id a frame, in every codebook: (items, codebooks, frames), with a chunk in front for EnCodec."""
    config = loaded.config
    books = getattr(config, "n_codebooks", None) or getattr(config, "num_quantizers", None) or 1
    codes = ids[:, None, :].expand(-1, books, -1)
    return codes[None] if loaded.kind == "encodec" else codes


def _first_voice(ids: Any) -> tuple[Any, Any]:
    """The first speaker and the first language."""
    first = torch.zeros((ids.shape[0], 1), dtype=torch.long, device=ids.device)
    return first, first
