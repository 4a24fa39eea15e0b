"""Building s3prl's upstreams without their checkpoints. Imports torch and s3prl, so only `prepare` imports this.

An upstream is made by its own expert, which wants a checkpoint: it gets one that was made in memory from a
configuration. What a configuration leaves out has the library's default, which is the base size.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stdout
from importlib.metadata import version
from typing import Any

import torch

from speechmeter.core.errors import SubjectError
from speechmeter.core.plugins import nearest
from speechmeter.core.protocols import Prepared
from speechmeter.core.types import Batch, Case, Stage
from speechmeter.subjects import torch_runtime as runtime
from speechmeter.subjects import torchaudio_stand_in as stand_in

_WAV2VEC2 = {"quantize_targets": True, "final_dim": 256}
"""What the published base wav2vec 2.0 adds to s3prl's default: weights that have no part in a call."""
_HUBERT = {"label_rate": 50, "final_dim": 256}
_CLUSTERS = 504
"""Classes that the published base HuBERT was trained on; they have weights, and no part in a call."""
_WAVLM = {"relative_position_embedding": True, "gru_rel_pos": True, "num_buckets": 320, "max_distance": 800}
"""What makes a WavLM of s3prl's default, which is a plain wav2vec 2.0: as in the published base model."""
_DISTILLED = {"encoder_layers": 2, "final_dim": 768, "out_layer_type": "expand-last", "n_tasks": 3,
              "task_emb_type": "expand-last", "pred_layer_id": [4, 8, 12]}  # fmt: skip
"""The published DistilHuBERT."""


def prepare_chain(case: Case, device: str) -> Prepared:
    """copy → model."""
    runtime.configure(case)
    name = case.subject.source
    with stand_in.torchaudio_or_stand_in() as covered:
        expert = importlib.import_module(f"s3prl.upstream.{name}.expert")
    with redirect_stdout(io.StringIO()):  # it tells its progress there
        upstream = expert.UpstreamExpert(_in_memory(_CHECKPOINTS[name](case.subject.options.get("config", {}))))
    upstream = upstream.eval().to(device)
    for weight in upstream.parameters():
        weight.requires_grad = False
    notes = [f"s3prl {version('s3prl')}", *([stand_in.NOTE] if covered else [])]
    return Prepared(
        stages=(
            Stage(name="copy", fn=_copy(device)),
            Stage(name="model", fn=runtime.inference(_hidden_states(upstream)), modules={name: upstream}),
        ),
        modules={name: upstream},
        sync=runtime.sync_for(device),
        notes=(*notes, "synthetic: random weights, same cost, no meaning"),
    )


def _copy(device: str) -> Callable[[Batch], list[torch.Tensor]]:
    def copy(batch: Batch) -> list[torch.Tensor]:
        waves = torch.from_numpy(batch.data).to(device)
        return [wave[:length] for wave, length in zip(waves, batch.lengths, strict=True)]

    return copy


def _hidden_states(upstream: Any) -> Callable[[list[torch.Tensor]], Any]:
    def hidden_states(waves: list[torch.Tensor]) -> Any:
        return upstream(waves)["hidden_states"]

    return hidden_states


def _in_memory(checkpoint: Mapping[str, Any]) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(dict(checkpoint), file)
    file.seek(0)
    return file


def _merged(cls: Any, values: Mapping[str, Any]) -> Any:
    from s3prl.upstream.utils import merge_with_parent

    _check_keys(values, cls.__dataclass_fields__)
    return merge_with_parent(cls, dict(values))


def _check_keys(values: Mapping[str, Any], known: Iterable[str]) -> None:
    """s3prl passes over a key that it does not know: the model would be another than the one asked for."""
    for key in values:
        if key not in known:
            raise SubjectError(f"config: s3prl knows no {key!r} for this upstream", fix=nearest(key, sorted(known)))


def _wav2vec2(config: Mapping[str, Any]) -> dict[str, Any]:
    from s3prl.upstream.wav2vec2.wav2vec2_model import Wav2Vec2Config, Wav2Vec2Model

    values = {**_WAV2VEC2, **config}
    weights = Wav2Vec2Model(_merged(Wav2Vec2Config, values)).state_dict()
    return {"task_cfg": {"normalize": False}, "model_cfg": values, "model_weight": weights}


def _hubert(config: Mapping[str, Any]) -> dict[str, Any]:
    from s3prl.upstream.hubert.hubert_model import HubertConfig, HubertModel, HubertPretrainingConfig

    values, task = {**_HUBERT, **config}, {"normalize": False}
    symbols = [[str(index) for index in range(_CLUSTERS)]]
    model = HubertModel(_merged(HubertConfig, values), _merged(HubertPretrainingConfig, task), symbols)
    weights = model.state_dict()
    return {"task_cfg": task, "model_cfg": values, "dictionaries_symbols": symbols, "model_weight": weights}


def _wavlm(config: Mapping[str, Any]) -> dict[str, Any]:
    from s3prl.upstream.wavlm.WavLM import WavLM, WavLMConfig

    values = {**_WAVLM, **config}
    _check_keys(values, vars(WavLMConfig()))
    return {"cfg": values, "model": WavLM(WavLMConfig(values)).state_dict()}


def _data2vec(config: Mapping[str, Any]) -> dict[str, Any]:
    from s3prl.upstream.data2vec.data2vec_model import Data2VecAudioConfig, Data2VecAudioModel

    values = {"encoder_layers": 12, **config}
    model = Data2VecAudioModel(_merged(Data2VecAudioConfig, values))
    model.remove_pretraining_modules()
    weights = {**model.state_dict(), "_ema": 0}  # the teacher, which the expert takes away
    return {"task_cfg": {"normalize": False}, "model_cfg": values, "model_weight": weights}


def _distiller(config: Mapping[str, Any]) -> dict[str, Any]:
    from s3prl.upstream.distiller.model import DistillerConfig, DistillerModel

    values = {**_DISTILLED, **config}
    _check_keys(values, vars(DistillerConfig({})))
    with redirect_stdout(io.StringIO()):
        weights = DistillerModel(DistillerConfig(values)).state_dict()
    return {"Config": {"distiller": values}, "Distiller": weights}


_CHECKPOINTS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "wav2vec2": _wav2vec2,
    "hubert": _hubert,
    "wavlm": _wavlm,
    "data2vec": _data2vec,
    "distiller": _distiller,
}
