"""The stages of a fairseq benchmark as models of ours: for each task a transformers architecture of the same size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from speechmeter.core.errors import PlanError
from speechmeter.plan.foreign.draft import Draft
from speechmeter.plan.source import KeyPath

Fed = Literal["sound", "features", "text"]

_SPECIAL = 4
"""Begin, padding, end and unknown come before the units of a fairseq dictionary."""
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
            "d_model": 512, "encoder_layers": 6, "decoder_layers": 6, "encoder_attention_heads": 8,
            "decoder_attention_heads": 8, "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048,
        },
    },
)  # fmt: skip
_SPECTROGRAM = {
    "hidden_size": 512, "encoder_ffn_dim": 2048, "decoder_layers": 6, "decoder_attention_heads": 4,
    "decoder_ffn_dim": 2048, "speech_decoder_postnet_units": 512,
}  # fmt: skip
_SYNTHESISER = StandIn(
    role="tts", load="transformers:speecht5", like="tts_transformer", fed="text", speaks=True, threshold=True,
    vocabulary=81,
    options={
        "head": "tts", "vocoder": "random",
        "config": {**_SPECTROGRAM, "encoder_layers": 6, "encoder_attention_heads": 4},
    },
)  # fmt: skip
_CONVERTER = StandIn(
    role="s2s", load="transformers:speecht5", like="s2spect_transformer", fed="sound", speaks=True, threshold=True,
    options={
        "head": "s2st", "vocoder": "random",
        "config": {**_SPECTROGRAM, "encoder_layers": 12, "encoder_attention_heads": 8},
    },
)  # fmt: skip
_VOCODER = StandIn(role="vocoder", load="transformers:seamless_m4t", like="code_hifigan", fed="text", speaks=True)
_TASKS = {
    "speech_to_text": _RECOGNISER,
    "translation": _TRANSLATOR,
    "text_to_speech": _SYNTHESISER,
    "speech_to_speech": _CONVERTER,
}
TASKS = tuple(_TASKS)
"""The tasks for which there is a model here."""


def stand_in(stage: Mapping[str, Any]) -> StandIn | None:
    """The model for a stage's task, or for its vocoder where it has no task; None when there is none of its kind."""
    task = stage.get("task")
    units = stage.get("target_code_size", _UNITS)
    if task is None:  # units to sound: the generator and duration predictor of the code HiFi-GAN
        config = {"unit_hifi_gan_vocab_size": units + _SPECIAL, "unit_embed_dim": 128}
        return replace(_VOCODER, vocabulary=units + _SPECIAL, options={"head": "vocoder", "config": config})
    if task == "speech_to_speech" and stage.get("target_is_code"):
        # speech to discrete units: the recogniser's shape with units for words
        config = {"vocab_size": units + _SPECIAL, "decoder_attention_heads": 8, **_sizes(stage)}
        return replace(_RECOGNISER, role="s2u", like="s2ut_transformer_fisher", options={"config": config})
    found = _TASKS.get(str(task))
    if found is _RECOGNISER and (sizes := _sizes(stage)):
        return replace(found, options={"config": sizes})
    return found


def _sizes(stage: Mapping[str, Any]) -> dict[str, int]:
    """Sizes that a stage states of a model that hears."""
    names = {"max_target_positions": "max_target_positions", "feat_dim": "input_feat_per_channel"}
    return {ours: stage[key] for key, ours in names.items() if key in stage}


GENERAL = "general"
NOT_READ = ("path", "data", "config_yaml", "vocoder", "vocoder_cfg")
"""Keys of a stage that name files of the original, which only fairseq can read. The plan keeps what they say."""
EOS = "eos_prob_threshold"
_BEAM, _BOUNDS, _LENGTH = "beam", ("max_len_a", "max_len_b"), "max_new_tokens"
GENERATION = (_BEAM, *_BOUNDS)
"""Keys of a stage that are axes of ours."""
_DEFAULT_BEAM, _DEFAULT_POSITIONS = 5, 1024
"""fairseq's own."""


@dataclass(frozen=True, kw_only=True)
class ForeignStage:
    """A stage of the file with what `general` adds to it, and the model that replaces it."""

    key: str
    own: Mapping[str, Any]
    merged: Mapping[str, Any]
    model: StandIn

    def origin(self, key: str) -> KeyPath:
        """Where the file says it."""
        return (self.key if key in self.own else GENERAL, key)

    @property
    def files(self) -> dict[str, str]:
        """The files of the original that this stage names, by their keys."""
        return {key: str(self.merged[key]) for key in NOT_READ if self.merged.get(key) not in (None, "")}

    def options(self) -> dict[str, Any]:
        """Options of the model in the plan."""
        handed = {"threshold": self.merged[EOS]} if self.model.threshold and EOS in self.merged else {}
        return {
            **self.model.options,
            **({"generate": handed} if handed else {}),
            **({"stand_in_for": self.files} if self.files else {}),
        }


def put_models(draft: Draft, stages: Sequence[ForeignStage], name: str) -> None:
    """Put the model or the cascade, with a note for each stage on the model that replaces it."""
    for stage in stages:
        files = ", ".join(f"{key} {name}" for key, name in stage.files.items())
        draft.note(
            f"{stage.key}: {stage.model.load} with the size of {stage.model.like} and random weights"
            + (f"; it replaces {files}, which only fairseq can read" if files else ""),
            (stage.key,),
        )
    _note_lengths(draft, stages)
    _check_threshold(draft, stages)
    if len(stages) == 1:
        stage = stages[0]
        draft.put("models", [{"name": name, "load": stage.model.load, **stage.options()}])
        draft.trace(("models", 0), (stage.key,))
        for key, value in _generation(draft, stage).items():
            draft.put(key, value, stage.origin(key))
            if key in stage.merged:
                draft.overrule(key, stage.origin(key))
        return
    entries = []
    for index, stage in enumerate(stages):
        path: KeyPath = ("models", 0, "stages", index)
        draft.trace(path, (stage.key,))
        entry = {"name": stage.model.role, "load": stage.model.load, **stage.options()}
        for key, value in _generation(draft, stage).items():
            entry[key] = value
            draft.trace((*path, key), stage.origin(key))
        entries.append(entry)
    draft.put("models", [{"name": name, "load": "cascade", "stages": entries}])
    draft.trace(("models", 0), (stages[0].key,))
    decoders = [stage for stage in stages if not stage.model.speaks]
    for key in GENERATION:
        if decoders and all(key in stage.merged for stage in decoders):
            draft.overrule(key, decoders[0].origin(key))


def _generation(draft: Draft, stage: ForeignStage) -> dict[str, Any]:
    """Beam and length bounds of a stage: what the file says; a flag where it is silent; else fairseq's beam."""
    if stage.model.speaks:
        return {}
    found = {key: stage.merged[key] for key in GENERATION if key in stage.merged}
    if draft.flagged(_LENGTH):
        found = {key: value for key, value in found.items() if key not in _BOUNDS}
    elif isinstance(most := found.get("max_len_b"), int):  # fairseq, too, ends where a model's positions end
        found["max_len_b"] = min(most, stage.merged.get("max_target_positions", _DEFAULT_POSITIONS) - 1)
    return found if _BEAM in found or draft.flagged(_BEAM) else {_BEAM: _DEFAULT_BEAM, **found}


def _check_threshold(draft: Draft, stages: Sequence[ForeignStage]) -> None:
    """The probability of an end must be one, and a stage must have a use for it."""
    for stage in stages:
        value = stage.merged.get(EOS, 0.5)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
            raise PlanError(
                f"{EOS} takes a number from 0 to 1, not {value!r}",
                where=draft.foreign.origin(stage.origin(EOS)),
                fix=f"for example {EOS}: 0.5",
            )
    asking = [stage for stage in stages if EOS in stage.merged]
    if asking and not any(stage.model.threshold for stage in asking):
        draft.note(
            f"{EOS}: ignored, because no stage predicts at every step whether its speech has ended",
            asking[0].origin(EOS),
        )


def _note_lengths(draft: Draft, stages: Sequence[ForeignStage]) -> None:
    """Say once what bounds mean for random weights, and whether a flag takes their place."""
    for stage in stages:
        key = next((key for key in reversed(_BOUNDS) if key in stage.merged and not stage.model.speaks), None)
        if key is not None:
            draft.note(
                "max_len_a, max_len_b: replaced by max_new_tokens"
                if draft.flagged(_LENGTH)
                else "max_len_a, max_len_b: with random weights every text has the greatest length that these allow; "
                "set max_new_tokens for another length",
                stage.origin(key),
            )
            return
