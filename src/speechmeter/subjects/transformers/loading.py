"""Loading: the configuration, the model with real or random weights, its extractor and tokenizer. Imports torch.

`compile: true` compiles of a model that generates its encoder, its vocoder, and its step where the library can: a cache
that grows makes a new graph for every length (112 s for the first call of a small Whisper), so a decoder is compiled
only where the library has a static cache for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
import transformers

from speechmeter.core.errors import SubjectError
from speechmeter.core.types import Case
from speechmeter.subjects import torch_runtime as runtime
from speechmeter.subjects.common import SYNTHETIC
from speechmeter.subjects.transformers.inputs import Listener, listener_of
from speechmeter.subjects.transformers.lengths import Lengths, lengths_of
from speechmeter.subjects.transformers.pinning import fill_generation_config
from speechmeter.subjects.transformers.sources import (
    COMPILED_WHOLE,
    NEEDS_VOCODER,
    SEARCHES,
    SOUND,
    class_name,
    has_weights,
    head_of,
    is_hub_id,
    model_types,
    read_config,
    takes,
)

_RANDOM = "random"
_RENAMED = {"hifigan": "SpeechT5HifiGanConfig"}
"""Model types of released files that the library knows under another name now."""


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """The parts that were compiled, and the options that `generate` needs for it."""

    parts: tuple[str, ...] = ()
    generate_options: dict[str, Any] = field(default_factory=dict)

    def notes(self) -> list[str]:
        """What a reader must know of a model that is compiled in part; nothing for any other."""
        return (
            [f"torch.compile: {' and '.join(self.parts)}; the loop around them is not compiled"] if self.parts else []
        )


def compile_parts(head: str, model: Any, vocoder: Any) -> Compiled:
    """Compile the parts of a model that generates, in place. Other models are compiled whole where they are called."""
    if head in COMPILED_WHOLE:
        return Compiled()
    (model.encoder if hasattr(model, "joint") else model.get_encoder()).compile()
    if vocoder is not None:
        vocoder.compile()
        return Compiled(parts=("encoder", "vocoder"))
    if head in SEARCHES and getattr(model, "_can_compile_fullgraph", False):
        from transformers.generation.configuration_utils import CompileConfig

        config = CompileConfig(mode="default", fullgraph=False)
        config._compile_all_devices = True  # without it the library compiles on accelerators only
        options = {"cache_implementation": "static", "compile_config": config}
        return Compiled(parts=("encoder", "decoder step (static cache)"), generate_options=options)
    return Compiled(parts=("encoder",))


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A model that is ready, with everything that its stages need."""

    case: Case
    device: str
    dtype: torch.dtype
    model: Any
    head: str
    random: bool
    lengths: Lengths
    listener: Listener | None = None
    tokenizer: Any = None
    vocoder: Any = None
    vocoder_random: bool = False
    compiled: Compiled = field(default_factory=Compiled)

    @property
    def config(self) -> Any:
        """The model's configuration."""
        return self.model.config

    @property
    def kind(self) -> str:
        """The model type."""
        return str(self.model.config.model_type)

    @property
    def beam(self) -> int:
        """Hypotheses that the decoder keeps."""
        return int(self.case.axes.get("beam") or 1)

    @property
    def generate_options(self) -> dict[str, Any]:
        """What is handed to `generate`: a language or a task by the plan, a static cache for a compiled step."""
        return {**self.compiled.generate_options, **self.case.subject.options.get("generate", {})}

    def notes(self) -> list[str]:
        """What a reader must know of the weights and of what was compiled."""
        notes = self.compiled.notes()
        # files of another toolkit that this model replaces, as the plan says, by their own keys
        files = self.case.subject.options.get("stand_in_for", {})
        named = ", ".join(f"{'checkpoint' if key == 'path' else key} {name}" for key, name in files.items())
        if named:
            notes.append(f"stand-in for {named}" + (": random weights" if self.random else ""))
        if self.random:
            return [SYNTHETIC, *notes]
        return (
            [
                "vocoder: random weights: calls cost the same as with trained ones, but the output has no meaning",
                *notes,
            ]
            if self.vocoder_random
            else notes
        )


def load(case: Case, device: str, dtype: torch.dtype) -> Loaded:
    """Everything from the source; raises SubjectError where a head or a vocoder is missing."""
    source, options = case.subject.source, case.subject.options
    config = config_of(source, options.get("config", {}))
    head = head_of(case, {"model_type": config.model_type, "architectures": getattr(config, "architectures", None)})
    name = class_name(head, config.model_type) if head is not None else None
    if head is None or name is None:
        raise SubjectError(f"{config.model_type} is not available with `head: {head}`", fix="use another `head`")
    random = options.get("weights") == _RANDOM or not has_weights(source)
    model = built(name, config, None if random else source)
    if head in ("encoder", "units") and getattr(config, "is_encoder_decoder", False):
        model = model.get_encoder()
    if random:
        fill_generation_config(model, config)
    vocoder, vocoder_random = _vocoder(case, config, head)
    model = _ready(model, case, device, dtype)
    vocoder = None if vocoder is None else _ready(vocoder, case, device, dtype)
    return Loaded(
        case=case,
        device=device,
        dtype=dtype,
        model=model,
        head="seq2seq" if head == "st" else head,
        random=random,
        lengths=lengths_of(case.axes, random=random),
        listener=listener_of(source, config, random=random) if takes(head, config.model_type) == SOUND else None,
        tokenizer=_tokenizer(source),
        vocoder=vocoder,
        vocoder_random=vocoder_random,
        compiled=compile_parts(head, model, vocoder) if case.axes.compile else Compiled(),
    )


def _ready(model: Any, case: Case, device: str, dtype: torch.dtype) -> Any:
    return runtime.quantized(model.eval().to(device=device, dtype=dtype), case)


def config_of(source: str, changes: Mapping[str, Any]) -> Any:
    """The configuration of a source, with the plan's changes."""
    if source in model_types() and not Path(source).exists():
        return transformers.AutoConfig.for_model(source, **changes)
    cls = _RENAMED.get(str(read_config(source).get("model_type")))
    if cls is not None:
        return getattr(transformers, cls).from_pretrained(source, **changes)
    return transformers.AutoConfig.from_pretrained(source, trust_remote_code=False, **changes)


def built(name: str, config: Any, source: str | None) -> Any:
    """The class of this name, with the weights of `source`, or random ones."""
    cls = getattr(transformers, name, None)
    if cls is None:  # a part that the library uses and does not export
        module = f"transformers.models.{config.model_type}.modeling_{config.model_type}"
        cls = getattr(import_module(module), name)
    return cls(config) if source is None else cls.from_pretrained(source, config=config)


def _vocoder(case: Case, config: Any, head: str) -> tuple[Any, bool]:
    """What turns the model's spectrograms into sound, and whether its weights are random."""
    if head not in ("tts", "s2st") or config.model_type not in NEEDS_VOCODER:
        return None, False
    source = case.subject.options.get("vocoder")
    if source is None:
        raise SubjectError(
            f"{config.model_type} needs a vocoder", fix="use `vocoder: random`, or name the directory of one"
        )
    if source == _RANDOM:
        made = transformers.SpeechT5HifiGanConfig(model_in_dim=config.num_mel_bins)
        return transformers.SpeechT5HifiGan(made), True
    made = config_of(source, {})
    name = class_name("vocoder", made.model_type)
    bands = getattr(made, "model_in_dim", None) or getattr(made, "num_mel_bins", None)
    if name is None or bands != config.num_mel_bins:
        raise SubjectError(
            f"the vocoder {source!r} takes {bands or 'no'} bands, but the model makes {config.num_mel_bins}",
            key="vocoder",
            fix="use the vocoder that belongs to the model, or use `vocoder: random`",
        )
    random = not has_weights(source)
    return built(name, made, None if random else source), random


def _tokenizer(source: str) -> Any:
    if not is_hub_id(source) and not any(Path(source).glob("*token*")) and not any(Path(source).glob("vocab*")):
        return None
    try:
        return transformers.AutoTokenizer.from_pretrained(source, trust_remote_code=False)
    except Exception:  # any absence or defect of tokenizer files leaves token ids as the output
        return None
