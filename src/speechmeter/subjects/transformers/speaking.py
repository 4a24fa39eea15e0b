"""Heads whose output is sound: synthesis, speech to speech, vocoders, and codecs, which make the codes too.

Imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import torch

from speechmeter.core.errors import SubjectError
from speechmeter.core.types import Batch, Speech, Stage
from speechmeter.subjects import torch_runtime as runtime
from speechmeter.subjects.transformers import pinning
from speechmeter.subjects.transformers.inputs import Ids, padded
from speechmeter.subjects.transformers.loading import Loaded
from speechmeter.subjects.transformers.sources import CODECS

Inputs = Mapping[str, Any]
Sound = tuple[Any, Sequence[int]]
"""Waveforms (items, samples), and how many samples of each are true."""
_RATES = {
    "fastspeech2_conformer_hifigan": 22_050,
    "fastspeech2_conformer_with_hifigan": 22_050,
    "univnet": 24_000,
}
"""Where the configuration does not state the sampling rate: that of the data the released models were trained on."""


def spoken(sound: Sound, rate: int) -> list[Speech]:
    """Waveforms as `Speech` on the CPU, without padding."""
    waves, lengths = sound
    held = waves.detach().float().cpu()
    return [Speech(samples=wave[:length], rate=rate) for wave, length in zip(held, lengths, strict=True)]


def spoken_stage(rate: int) -> Stage:
    """The last stage of a model that speaks."""
    return Stage(name="decode", fn=lambda sound: spoken(sound, rate))


def waves_of(made: Any) -> Any:
    """(items, samples), without the dimensions of size 1 that a model leaves."""
    return made.reshape(1, -1) if made.dim() == 1 else made.reshape(made.shape[0], -1)


def rate_of(config: Any) -> int:
    """The sampling rate of the sound that a model of this configuration makes."""
    return int(getattr(config, "sampling_rate", None) or _RATES[config.model_type])


def spectrogram_stages(loaded: Loaded) -> list[Stage]:
    """An acoustic model, then its vocoder: SpeechT5 (from text or speech) and FastSpeech 2."""
    make = _speecht5(loaded) if loaded.kind == "speecht5" else _fastspeech2(loaded)
    hop = prod(getattr(loaded.vocoder.config, "upsample_rates", ())) or prod(
        loaded.vocoder.config.resblock_stride_sizes
    )

    def vocoder(made: tuple[Any, Sequence[int]]) -> Sound:
        frames, lengths = made
        return waves_of(loaded.vocoder(frames)), [length * hop for length in lengths]

    return [
        Stage(name="model", fn=runtime.inference(make), modules={"model": loaded.model}),
        Stage(name="vocoder", fn=runtime.inference(vocoder), modules={"vocoder": loaded.vocoder}),
        spoken_stage(rate_of(loaded.vocoder.config)),
    ]


def _speecht5(loaded: Loaded) -> Callable[[Inputs], Any]:
    model, config = loaded.model, loaded.config
    asked = loaded.lengths.per_source
    bounds = {} if asked is None else {"maxlenratio": asked}
    if loaded.random:
        bounds = dict.fromkeys(("minlenratio", "maxlenratio"), frames_per_symbol(loaded))
    options = {**bounds, **loaded.case.subject.options.get("generate", {})}  # a threshold for the end of speech

    def make(inputs: Inputs) -> Any:
        first = next(iter(inputs.values()))
        voice = torch.zeros((first.shape[0], config.speaker_embedding_dim), dtype=loaded.dtype, device=loaded.device)
        return model.generate_speech(**inputs, speaker_embeddings=voice, return_output_lengths=True, **options)

    return make


def frames_per_symbol(loaded: Loaded) -> float:
    """Frames of the spectrogram that random weights make for each position of the source; `max_len_a` sets them."""
    if loaded.lengths.per_source is not None:
        return loaded.lengths.per_source
    if loaded.head == "s2st":
        return pinning.ECHO_FRAMES
    return pinning.LETTER_FRAMES if loaded.kind in ("speecht5", "vits") else pinning.PHONE_FRAMES


def _whole_frames(loaded: Loaded) -> int:
    return max(1, round(frames_per_symbol(loaded)))


def _fastspeech2(loaded: Loaded) -> Callable[[Inputs], Any]:
    if loaded.random:
        pinning.pin_durations(loaded.model.duration_predictor, _whole_frames(loaded))

    def make(inputs: Inputs) -> Any:
        made = loaded.model(**inputs, return_dict=True)
        return made.spectrogram, made.duration_outputs.sum(-1).tolist()

    return make


def waveform_stages(loaded: Loaded) -> list[Stage]:
    """One model from text to waveform: VITS, and FastSpeech 2 with its vocoder inside."""
    if loaded.random and loaded.kind == "vits":
        pinning.pin_log_durations(loaded.model.duration_predictor, _whole_frames(loaded))
    elif loaded.random:
        pinning.pin_durations(loaded.model.model.duration_predictor, _whole_frames(loaded))

    def make(inputs: Inputs) -> Sound:
        made = loaded.model(**inputs, return_dict=True)
        if loaded.kind == "vits":
            return made.waveform, made.sequence_lengths.tolist()
        hop = prod(loaded.config.vocoder_config.upsample_rates)
        return waves_of(made.waveform), (made.duration_outputs.sum(-1) * hop).tolist()

    return [
        Stage(name="model", fn=runtime.inference(make), modules={"model": loaded.model}),
        spoken_stage(rate_of(loaded.config)),
    ]


def seamless_stages(loaded: Loaded) -> list[Stage]:
    """SeamlessM4T: text tokens, then units, then sound, all in one `generate`."""
    tokens = loaded.lengths.fixed if loaded.random else None
    in_steps = loaded.kind == "seamless_m4t"  # its units are searched one by one, those of version 2 made at once
    units = tokens * pinning.UNITS_PER_TOKEN if tokens is not None and in_steps else 0
    if loaded.random:
        _pin_seamless(loaded, tokens)
    options = _seamless_options(loaded, units)

    def model(inputs: Inputs) -> Any:
        return loaded.model.generate(**inputs, return_intermediate_token_ids=True, **options)

    def made(output: Any) -> int:
        texts, pieces = output.sequences[:, 2:], output.unit_sequences[:, 2:]
        if in_steps:
            return int(texts.numel() + pieces.numel())
        return int((texts != loaded.model.generation_config.pad_token_id).sum())

    def decode(output: Any) -> list[Speech]:
        lengths = [int(length) for length in output.waveform_lengths.reshape(-1).tolist()]
        return spoken((waves_of(output.waveform), lengths), rate_of(loaded.config))

    return [
        Stage(
            name="model",
            fn=runtime.inference(model),
            modules={"model": loaded.model},
            tokens=made,
            pinned_tokens=None if tokens is None else tokens + units,
        ),
        Stage(name="decode", fn=decode),
    ]


def _pin_seamless(loaded: Loaded, tokens: int | None) -> None:
    if tokens is None:
        raise SubjectError(
            "SeamlessM4T with random weights cannot use max_len_a", key="max_len_a", fix="use `max_new_tokens`"
        )
    pinning.keep_units_known(loaded.model.vocoder.unit_embedding)
    pinning.pin_log1p_durations(loaded.model.vocoder.dur_predictor, pinning.UNIT_FRAMES)
    if loaded.kind == "seamless_m4t_v2":
        pinning.pin_log1p_durations(loaded.model.t2u_model.model.decoder.duration_predictor, pinning.UNIT_FRAMES)


def _seamless_options(loaded: Loaded, units: int) -> dict[str, Any]:
    options: dict[str, Any] = {f"text_{name}": value for name, value in loaded.lengths.bounds().items()}
    options |= {"text_num_beams": loaded.beam, "do_sample": False, **loaded.generate_options}
    if loaded.random:
        generation = loaded.model.generation_config
        special = {generation.pad_token_id, generation.eos_token_id, pinning.UNKNOWN}
        options |= {"tgt_lang": pinning.LANGUAGE, "text_suppress_tokens": sorted(special - {None})}
    if units:
        options |= {"speech_min_new_tokens": units, "speech_max_new_tokens": units}
    return options


def speaking_notes(loaded: Loaded) -> list[str]:
    """What was pinned or invented so that the cost is defined."""
    notes: list[str] = []
    if loaded.kind == "speecht5" and loaded.head in ("tts", "s2st"):
        notes.append("voice: a speaker embedding of zeros")
    if loaded.random:
        notes += _pinned(loaded)
    if loaded.head == "vocoder" and loaded.kind in CODECS:
        notes.append("input: the same id for every codebook of a frame")
    if loaded.head == "units":
        notes.append("units: random cluster centres, one unit per frame")
    return notes


def _pinned(loaded: Loaded) -> list[str]:
    seamless = loaded.kind.startswith("seamless")
    if loaded.head in ("tts", "s2st") and seamless:
        units = f"{pinning.UNITS_PER_TOKEN} units per token, {pinning.UNIT_FRAMES} frames per unit"
        return [*loaded.lengths.notes(), f"speech length fixed at {units}"]
    if loaded.head == "vocoder" and seamless:
        return ["speech length fixed at one frame per unit"]
    if loaded.head in ("tts", "s2st"):
        frames = frames_per_symbol(loaded) if loaded.kind == "speecht5" else _whole_frames(loaded)
        return [f"speech length fixed at {frames:g} frames per source symbol"]
    return []


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

        def first_voice(inputs: Inputs) -> Any:
            ids = inputs["input_ids"]
            first = torch.zeros((ids.shape[0], 1), dtype=torch.long, device=ids.device)
            return call(ids, first, first)[0]  # the first speaker and the first language

        return first_voice
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
                f"this vocoder takes {bands} bands, not {batch.data.shape[-1]}",
                fix=f"use {bands} bands under `features`",
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
