"""Upstreams of s3prl that take waveforms: built by their names from a configuration, with random weights.

An upstream is made by its own expert, which needs a checkpoint: it gets one that is made in memory from a
configuration. What a configuration leaves out has the library's default, which is the base size. s3prl's own
checkpoints would have to be downloaded, and change nothing in the cost. Its front-ends (`fbank`, `mfcc`) and the
upstreams that use them (`mockingjay`, `tera`, `apc`) compute with torchaudio and are not supported; without it they
fail with "ImportError: cannot import name 'compute_deltas' from 'torchaudio.functional'".
"""

from __future__ import annotations

import importlib
import io
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stdout
from importlib.metadata import version
from typing import Any

from speechmeter.core.axes import Axis, Option
from speechmeter.core.errors import SubjectError
from speechmeter.core.plugins import nearest
from speechmeter.core.protocols import SOUND, Installed, Prepared
from speechmeter.core.types import Batch, Case, Stage
from speechmeter.subjects import torchaudio_stand_in as stand_in
from speechmeter.subjects.common import SYNTHETIC, installed

UPSTREAMS = ("wav2vec2", "hubert", "wavlm", "data2vec", "distiller")
_BY_TORCHAUDIO = ("baseline", "fbank", "fbank_no_cmvn", "mfcc", "mel", "linear", "spectrogram", "mockingjay", "tera",
                  "audio_albert", "apc", "vq_apc", "npc", "cpc")  # fmt: skip
_HARMLESS = re.compile(r"[\w.-]+|[\d\s\[\](),+*]+")
"""s3prl evaluates some strings as Python (`conv_feature_layers`): one word, or arithmetic on lists of numbers."""
_WAV2VEC2 = {"quantize_targets": True, "final_dim": 256}
"""What the published base wav2vec 2.0 adds to s3prl's default: weights that no call uses."""
_HUBERT = {"label_rate": 50, "final_dim": 256}
_CLUSTERS = 504
"""Classes that the published base HuBERT was trained on; their weights are used by no call."""
_WAVLM = {"relative_position_embedding": True, "gru_rel_pos": True, "num_buckets": 320, "max_distance": 800}
"""Of the published base WavLM: s3prl's default for it is a plain wav2vec 2.0."""
_DISTILLED = {"encoder_layers": 2, "final_dim": 768, "out_layer_type": "expand-last", "n_tasks": 3,
              "task_emb_type": "expand-last", "pred_layer_id": [4, 8, 12]}  # fmt: skip
"""The published DistilHuBERT."""


class S3prlSubject:
    """`s3prl:UPSTREAM`: copy → model, all hidden states as output."""

    summary = "s3prl upstreams: " + ", ".join(UPSTREAMS)
    axes: tuple[Axis, ...] = ()
    options = (
        Option(name="config", kind=dict, default={}, help="configuration values, for example {encoder_layers: 6}"),
    )
    runs_code = False
    takes = (SOUND,)

    def installed(self) -> Installed:
        """Needs s3prl and torch; torchaudio is not needed, although s3prl asks for it."""
        return installed("s3prl", "torch", "omegaconf", extra="s3prl")

    def check(self, case: Case) -> None:
        """The upstream must be known, and its configuration plain values."""
        source, config = case.subject.source, case.subject.options.get("config", {})
        if source in _BY_TORCHAUDIO:
            raise SubjectError(
                f"the upstream {source!r} of s3prl needs torchaudio, which is not supported here",
                fix="choose from: " + ", ".join(UPSTREAMS),
            )
        if source not in UPSTREAMS:
            raise SubjectError(f"there is no s3prl upstream {source!r}", fix=nearest(source, list(UPSTREAMS)))
        for key, value in config.items():
            numbers = isinstance(value, list) and all(isinstance(item, int | float) for item in value)
            word = isinstance(value, str) and _HARMLESS.fullmatch(value) is not None
            if not (numbers or word or isinstance(value, int | float)):
                raise SubjectError(f"config: {key} takes a number, a word or lists of numbers, not {value!r}")

    def unavailable(self, case: Case) -> str | None:
        """Some upstreams convert to float32, and all collect hidden states with hooks."""
        if case.axes.dtype != "float32":
            return "s3prl's upstreams run in float32 only, because some convert their input to float32"
        if case.axes.compile:
            return "s3prl's upstreams collect hidden states with hooks, which torch.compile drops"
        return None

    def prepare(self, case: Case, device: str) -> Prepared:
        """Build the upstream with random weights: copy → model."""
        import torch

        from speechmeter.subjects import torch_runtime as runtime

        runtime.configure(case)
        name = case.subject.source
        with stand_in.torchaudio_or_stand_in() as covered:
            expert = importlib.import_module(f"s3prl.upstream.{name}.expert")
        checkpoint = io.BytesIO()
        with redirect_stdout(io.StringIO()):  # it prints its progress
            torch.save(_CHECKPOINTS[name](case.subject.options.get("config", {})), checkpoint)
            checkpoint.seek(0)
            upstream = expert.UpstreamExpert(checkpoint)
        upstream = upstream.eval().to(device)
        for weight in upstream.parameters():
            weight.requires_grad = False

        def copy(batch: Batch) -> list[torch.Tensor]:
            on_device = torch.from_numpy(batch.data).to(device)
            return [wave[:length] for wave, length in zip(on_device, batch.lengths, strict=True)]

        def hidden_states(waves: list[torch.Tensor]) -> Any:
            return upstream(waves)["hidden_states"]

        return Prepared(
            stages=(
                Stage(name="copy", fn=copy),
                Stage(name="model", fn=runtime.inference(hidden_states), modules={name: upstream}),
            ),
            modules={name: upstream},
            sync=runtime.sync_for(device),
            notes=(f"s3prl {version('s3prl')}", *([stand_in.NOTE] if covered else []), SYNTHETIC),
        )


def _merged(cls: Any, values: Mapping[str, Any]) -> Any:
    from s3prl.upstream.utils import merge_with_parent

    _check_keys(values, cls.__dataclass_fields__)
    return merge_with_parent(cls, dict(values))


def _check_keys(values: Mapping[str, Any], known: Iterable[str]) -> None:
    """s3prl ignores a key that it does not know: the model would be another one than the user asked for."""
    for key in values:
        if key not in known:
            raise SubjectError(f"config: this s3prl upstream has no setting {key!r}", fix=nearest(key, sorted(known)))


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
    return {"Config": {"distiller": values}, "Distiller": DistillerModel(DistillerConfig(values)).state_dict()}


_CHECKPOINTS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "wav2vec2": _wav2vec2,
    "hubert": _hubert,
    "wavlm": _wavlm,
    "data2vec": _data2vec,
    "distiller": _distiller,
}
