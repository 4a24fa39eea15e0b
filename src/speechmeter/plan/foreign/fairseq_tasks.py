"""What stands in for a fairseq task: a transformers architecture of the same kind, at the size fairseq publishes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Fed = Literal["sound", "features", "text"]

_SPECIAL = 4
"""Begin, padding, end and unknown stand before the units of a fairseq dictionary."""
_BANDS = 80
_UNITS = 100
"""Of the published model."""
SIZES = ("target_code_size", "max_target_positions", "feat_dim")
"""Keys of a stage that are sizes of its architecture: whole numbers."""


@dataclass(frozen=True, kw_only=True)
class StandIn:
    """A model of ours for a task: its role in a cascade, where its architecture comes from, and what it is fed.

    One that is fed `features` hears sound too, through its own front-end. One that `speaks` makes sound; the others
    decode tokens, so that beam and length bounds mean something. One with a `threshold` decides at every step whether
    its speech has ended.
    """

    role: str
    load: str
    like: str
    fed: Fed
    speaks: bool = False
    threshold: bool = False
    vocabulary: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def bands(self) -> int:
        """Bands of the features that a model is fed."""
        return int(self.options.get("config", {}).get("input_feat_per_channel", _BANDS))


_RECOGNISER = StandIn(role="s2t", load="transformers:speech_to_text", like="s2t_transformer_s", fed="features")
_TRANSLATOR = StandIn(
    role="mt",
    load="transformers:marian",
    like="transformer (base)",
    fed="text",
    vocabulary=58_101,
    options={
        "head": "mt",
        "config": {
            "d_model": 512,
            "encoder_layers": 6,
            "decoder_layers": 6,
            "encoder_attention_heads": 8,
            "decoder_attention_heads": 8,
            "encoder_ffn_dim": 2048,
            "decoder_ffn_dim": 2048,
        },
    },
)
_SPECTROGRAM = {
    "hidden_size": 512,
    "encoder_ffn_dim": 2048,
    "decoder_layers": 6,
    "decoder_attention_heads": 4,
    "decoder_ffn_dim": 2048,
    "speech_decoder_postnet_units": 512,
}
_SYNTHESISER = StandIn(
    role="tts",
    load="transformers:speecht5",
    like="tts_transformer",
    fed="text",
    speaks=True,
    threshold=True,
    vocabulary=81,
    options={
        "head": "tts",
        "vocoder": "random",
        "config": {**_SPECTROGRAM, "encoder_layers": 6, "encoder_attention_heads": 4},
    },
)
_CONVERTER = StandIn(
    role="s2s",
    load="transformers:speecht5",
    like="s2spect_transformer",
    fed="sound",
    speaks=True,
    threshold=True,
    options={
        "head": "s2st",
        "vocoder": "random",
        "config": {**_SPECTROGRAM, "encoder_layers": 12, "encoder_attention_heads": 8},
    },
)
_TASKS = {
    "speech_to_text": _RECOGNISER,
    "translation": _TRANSLATOR,
    "text_to_speech": _SYNTHESISER,
    "speech_to_speech": _CONVERTER,
}
TASKS = tuple(_TASKS)
"""The tasks that have a stand-in."""


def stand_in(stage: Mapping[str, Any]) -> StandIn | None:
    """The model for a stage's task, or for its vocoder where it names no task; None when there is none of its kind."""
    task = stage.get("task")
    if task is None:
        return _vocoder(stage)
    if task == "speech_to_speech" and stage.get("target_is_code"):
        return _to_units(stage)
    found = _TASKS.get(str(task))
    if found is _RECOGNISER and (sizes := _sizes(stage)):
        return replace(found, options={"config": sizes})
    return found


def _to_units(stage: Mapping[str, Any]) -> StandIn:
    """Speech to discrete units: the recogniser's shape with units for words."""
    size = stage.get("target_code_size", _UNITS)
    config = {"vocab_size": size + _SPECIAL, "decoder_attention_heads": 8, **_sizes(stage)}
    return replace(_RECOGNISER, role="s2u", like="s2ut_transformer_fisher", options={"config": config})


def _vocoder(stage: Mapping[str, Any]) -> StandIn:
    """Units to sound: the generator and duration predictor of the code HiFi-GAN."""
    size = stage.get("target_code_size", _UNITS)
    config = {"unit_hifi_gan_vocab_size": size + _SPECIAL, "unit_embed_dim": 128}
    options = {"head": "vocoder", "config": config}
    return StandIn(
        role="vocoder",
        load="transformers:seamless_m4t",
        like="code_hifigan",
        fed="text",
        speaks=True,
        vocabulary=size + _SPECIAL,
        options=options,
    )


def _sizes(stage: Mapping[str, Any]) -> dict[str, int]:
    """Sizes that a stage states of a model that hears."""
    names = {"max_target_positions": "max_target_positions", "feat_dim": "input_feat_per_channel"}
    return {ours: stage[key] for key, ours in names.items() if key in stage}
