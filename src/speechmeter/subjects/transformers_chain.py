"""The stages of a transformers model. Imports torch and transformers, so only `prepare` imports this."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers.models.auto.feature_extraction_auto import FEATURE_EXTRACTOR_MAPPING_NAMES

from speechmeter.core.protocols import Prepared
from speechmeter.core.types import Batch, Case, Stage
from speechmeter.subjects import torch_runtime as runtime
from speechmeter.subjects.transformers import is_hub_id

_RATE = 16_000
_PINNED_TOKENS = 32
"""Tokens a random-weight decoder makes when the plan does not say: its own stopping means nothing."""
_CLASSES = {"ctc": "AutoModelForCTC", "seq2seq": "AutoModelForSpeechSeq2Seq", "encoder": "AutoModel"}
_HALF_INPUTS = ("input_values", "input_features")


@dataclass(frozen=True, kw_only=True)
class _Loaded:
    model: Any
    extractor: Any
    tokenizer: Any
    head: str
    random: bool


def prepare_chain(case: Case, device: str) -> Prepared:
    """features → copy → model → decode, with the parts that this model has."""
    transformers.logging.set_verbosity_error()
    dtype = runtime.configure(case)
    loaded = _load(case, device, dtype)
    pinned = _pinned_tokens(case, loaded)
    stages = [
        Stage(name="features", fn=_features(loaded.extractor)),
        Stage(name="copy", fn=_copy(device, dtype)),
        Stage(
            name="model",
            fn=_model(loaded, case, pinned),
            modules={"model": loaded.model},
            tokens=_token_counter(loaded, pinned) if loaded.head == "seq2seq" else None,
            pinned_tokens=pinned,
        ),
    ]
    if loaded.head != "encoder":
        stages.append(Stage(name="decode", fn=_decode(loaded)))
    return Prepared(
        stages=tuple(stages),
        modules={"model": loaded.model},
        sync=runtime.sync_for(device),
        notes=tuple(_notes(loaded, pinned)),
        data_dependent=loaded.head == "seq2seq" and pinned is None,
    )


def _token_counter(loaded: _Loaded, pinned: int | None) -> Callable[[Any], int]:
    """Counts what the model stage made: start and padding tokens are not among it."""
    config = loaded.model.generation_config

    def tokens(ids: Any) -> int:
        if pinned is not None:  # random weights may make any token, the one to start with too: go by the width
            return int(ids[:, 1:].numel() if ids.shape[1] == pinned + 1 else ids.numel())
        made = ids[:, 1:] if int(ids[0, 0]) == config.decoder_start_token_id else ids
        return int(made.numel() if config.pad_token_id is None else (made != config.pad_token_id).sum())

    return tokens


def _load(case: Case, device: str, dtype: torch.dtype) -> _Loaded:
    source, options = case.subject.source, case.subject.options
    config = _config(source, options.get("config", {}))
    random = options.get("weights") == "random" or not _has_weights(source)
    head = options.get("head") or _natural_head(config)
    cls = getattr(transformers, _CLASSES[head])
    model = cls.from_config(config) if random else cls.from_pretrained(source, config=config)
    return _Loaded(
        model=model.eval().to(device=device, dtype=dtype),
        extractor=_extractor(source, config),
        tokenizer=_tokenizer(source) if head != "encoder" else None,
        head=head,
        random=random,
    )


def _config(source: str, changes: Mapping[str, Any]) -> Any:
    if Path(source).exists() or is_hub_id(source):
        return transformers.AutoConfig.from_pretrained(source, trust_remote_code=False, **changes)
    return transformers.AutoConfig.for_model(source, **changes)


def _has_weights(source: str) -> bool:
    path = Path(source)
    if path.is_dir():
        return any(path.glob("*.safetensors")) or any(path.glob("pytorch_model*.bin"))
    return is_hub_id(source)


def _natural_head(config: Any) -> str:
    named = " ".join(getattr(config, "architectures", None) or [])
    if "ForCTC" in named:
        return "ctc"
    return "seq2seq" if getattr(config, "is_encoder_decoder", False) else "encoder"


def _extractor(source: str, config: Any) -> Any:
    """The model's own feature extractor, else its class with the sizes that the configuration states."""
    if is_hub_id(source) or (Path(source) / "preprocessor_config.json").is_file():
        return transformers.AutoFeatureExtractor.from_pretrained(source)
    name = FEATURE_EXTRACTOR_MAPPING_NAMES.get(config.model_type)
    if isinstance(name, tuple):
        name = name[0]
    if name is None:
        raise ValueError(f"{config.model_type} is not a model that takes audio: transformers has no extractor for it")
    bands = getattr(config, "num_mel_bins", None)
    return getattr(transformers, name)(**({"feature_size": bands} if bands else {}))


def _tokenizer(source: str) -> Any:
    if not is_hub_id(source) and not any(Path(source).glob("*token*")) and not any(Path(source).glob("vocab*")):
        return None
    try:
        return transformers.AutoTokenizer.from_pretrained(source, trust_remote_code=False)
    except Exception:  # any absence or defect of tokenizer files leaves token ids as the output
        return None


def _features(extractor: Any) -> Any:
    def features(batch: Batch) -> Mapping[str, Any]:
        waves = [wave[:length] for wave, length in zip(batch.data, batch.lengths, strict=True)]
        made = extractor(waves, sampling_rate=_RATE, return_tensors="pt", padding=True)
        if not any(key in made for key in _HALF_INPUTS):
            made = {"input_values": next(iter(made.values()))}
        return dict(made)

    if "whisper" in type(extractor).__name__.lower():
        return _whisper_features(extractor)
    return features


def _whisper_features(extractor: Any) -> Any:
    """Whisper hears windows of 30 s: its extractor pads to them, whatever `padding` says elsewhere."""

    def features(batch: Batch) -> Mapping[str, Any]:
        waves = [wave[:length] for wave, length in zip(batch.data, batch.lengths, strict=True)]
        return dict(extractor(waves, sampling_rate=_RATE, return_tensors="pt"))

    return features


def _copy(device: str, dtype: torch.dtype) -> Any:
    def copy(inputs: Mapping[str, Any]) -> dict[str, Any]:
        return {
            key: value.to(device=device, dtype=dtype if value.is_floating_point() else None)
            for key, value in inputs.items()
        }

    return copy


def _model(loaded: _Loaded, case: Case, pinned: int | None) -> Any:
    if loaded.head == "seq2seq":
        length = pinned or case.axes.get("max_new_tokens")
        exact = {"min_new_tokens": pinned} if pinned else {}
        options = {"max_new_tokens": length, **exact} if length else {}

        def generate(inputs: Mapping[str, Any]) -> Any:
            return loaded.model.generate(**inputs, do_sample=False, num_beams=1, **options)

        return runtime.inference(generate)
    forward = runtime.compiled(loaded.model, case)

    def first_output(inputs: Mapping[str, Any]) -> Any:
        return forward(**inputs)[0]

    return runtime.inference(first_output)


def _decode(loaded: _Loaded) -> Any:
    def decode(output: Any) -> list[Any]:
        ids = output.argmax(dim=-1) if loaded.head == "ctc" else output
        if loaded.tokenizer is None:
            rows: list[Any] = ids.tolist()
            return rows
        texts: list[Any] = loaded.tokenizer.batch_decode(ids, skip_special_tokens=True)
        return texts

    return decode


def _pinned_tokens(case: Case, loaded: _Loaded) -> int | None:
    if loaded.head != "seq2seq" or not loaded.random:
        return None
    return int(case.axes.get("max_new_tokens") or _PINNED_TOKENS)


def _notes(loaded: _Loaded, pinned: int | None) -> list[str]:
    notes = ["synthetic: random weights, same cost, no meaning"] if loaded.random else []
    if pinned:
        notes.append(f"decode length pinned to {pinned} tokens")
    if loaded.head != "encoder" and loaded.tokenizer is None:
        notes.append("no tokenizer files: output is token ids")
    return notes
