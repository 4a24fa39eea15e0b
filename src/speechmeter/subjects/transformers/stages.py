"""The stages of a transformers model. Imports torch and transformers, so only `prepare` imports this."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import transformers

from speechmeter.core import plugins, protocols
from speechmeter.core.protocols import Prepared
from speechmeter.core.types import Case, Stage
from speechmeter.subjects import torch_runtime as runtime
from speechmeter.subjects.transformers import speaking, writing
from speechmeter.subjects.transformers.inputs import read_text, reading_notes
from speechmeter.subjects.transformers.loading import Loaded, load
from speechmeter.subjects.transformers.sources import NEEDS_VOCODER, SOUND, SPEAKS, takes

_WRITES = {
    "ctc": writing.ctc_stages,
    "mt": writing.seq2seq_stages,
    "rnnt": writing.transducer_stages,
    "seq2seq": writing.seq2seq_stages,
    "tdt": writing.transducer_stages,
}


def prepare_chain(case: Case, device: str) -> Prepared:
    """features → copy → model → (vocoder →) decode, with the parts that this model has."""
    transformers.logging.set_verbosity_error()
    dtype = runtime.configure(case)
    loaded = load(case, device, dtype)
    stages = [
        Stage(name="features", fn=_features(loaded)),
        Stage(name="copy", fn=_copy(device, dtype)),
        *_stages_of(loaded),
    ]
    return Prepared(
        stages=tuple(stages),
        modules={name: module for stage in stages for name, module in stage.modules.items()},
        sync=runtime.sync_for(device),
        notes=tuple(_notes(loaded)),
        data_dependent=not loaded.random and loaded.head not in ("encoder", "ctc", "codec", "vocoder", "units"),
    )


def _features(loaded: Loaded) -> Callable[[Any], Mapping[str, Any]]:
    if loaded.listener is not None:
        return loaded.listener.features
    if loaded.head == "vocoder":
        return speaking.vocoder_input(loaded)
    return read_text(loaded.config, loaded.tokenizer, end=loaded.head == "mt")


def _copy(device: str, dtype: torch.dtype) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    def on_device(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return value.to(device=device, dtype=dtype if value.is_floating_point() else None)

    return lambda inputs: {key: on_device(value) for key, value in inputs.items()}


def _stages_of(loaded: Loaded) -> list[Stage]:
    if loaded.head in _WRITES:
        return _WRITES[loaded.head](loaded)
    if loaded.head in SPEAKS and loaded.kind in NEEDS_VOCODER:
        return speaking.spectrogram_stages(loaded)
    if loaded.head in SPEAKS and loaded.kind.startswith("seamless"):
        return speaking.seamless_stages(loaded)
    heads = {
        "tts": speaking.waveform_stages,
        "codec": speaking.codec_stages,
        "vocoder": speaking.vocoder_stages,
        "units": writing.units_stages,
        "encoder": writing.encoder_stages,
    }
    return heads[loaded.head](loaded)


def _notes(loaded: Loaded) -> list[str]:
    notes = loaded.notes()
    if loaded.head in _WRITES:
        notes += writing.writing_notes(loaded)
    if takes(loaded.head, loaded.kind) != SOUND and loaded.head != "vocoder":
        notes += reading_notes(loaded.config, loaded.tokenizer)
    if loaded.listener is not None:
        is_past = plugins.fed_by(loaded.case).kinds == (protocols.FEATURES,)
        notes += (
            ["the input is features, so the model's own feature extraction does not run"]
            if is_past
            else loaded.listener.notes
        )
    return [*notes, *speaking.speaking_notes(loaded)]
