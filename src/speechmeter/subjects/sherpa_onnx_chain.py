"""The stages of a sherpa-onnx recogniser. Imports sherpa_onnx and onnx, so only `prepare` imports this."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import sherpa_onnx

from speechmeter.core.errors import SubjectError
from speechmeter.core.protocols import Prepared
from speechmeter.core.types import Batch, Case, Stage
from speechmeter.subjects.generation import SYNTHETIC
from speechmeter.subjects.onnx_file import weights_only
from speechmeter.subjects.sherpa_onnx import model_file

_RATE = 16_000
_NEEDED = {
    "zipformer2_ctc": (),
    "EncDecCTCModelBPE": ("vocab_size", "subsampling_factor", "normalize_type"),
    "EncDecCTCModel": ("vocab_size", "subsampling_factor", "normalize_type"),
    "EncDecHybridRNNTCTCBPEModel": ("vocab_size", "subsampling_factor", "normalize_type"),
    "wenet_ctc": ("vocab_size", "subsampling_factor"),
}
"""What the metadata of each model_type must hold: sherpa-onnx ends the process where it does not."""


def prepare_chain(case: Case) -> Prepared:
    """features → model → decode."""
    path = model_file(case)
    weights = weights_only(path)
    kind = _kind(path, weights)
    recogniser = _recogniser(kind, path, int(case.axes["threads"]))
    modules = {"model": weights}
    return Prepared(
        stages=(
            Stage(name="features", fn=_features(recogniser)),
            Stage(name="model", fn=_model(recogniser), modules=modules),
            Stage(name="decode", fn=_texts),
        ),
        modules=modules,
        notes=(
            f"sherpa-onnx {sherpa_onnx.__version__}, {kind}, greedy search",
            *([SYNTHETIC] if case.subject.options.get("weights") == "random" else []),
        ),
    )


def _kind(path: Path, model: Any) -> str:
    metadata: dict[str, str] = {entry.key: entry.value for entry in model.metadata_props}
    kind = metadata.get("model_type", "")
    if kind not in _NEEDED:
        raise SubjectError(
            f"{str(path)!r} has model_type {kind!r} in its metadata", fix=f"known here: {', '.join(_NEEDED)}"
        )
    missing = [key for key in _NEEDED[kind] if key not in metadata]
    if missing:
        raise SubjectError(f"{str(path)!r} has no {missing[0]} in its metadata", fix="export it for sherpa-onnx")
    return kind


def _recogniser(kind: str, path: Path, threads: int) -> Any:
    make = {"zipformer2_ctc": "from_zipformer_ctc", "wenet_ctc": "from_wenet_ctc"}.get(kind, "from_nemo_ctc")
    tokens = path.with_name("tokens.txt")
    try:
        return getattr(sherpa_onnx.OfflineRecognizer, make)(model=str(path), tokens=str(tokens), num_threads=threads)
    except Exception as error:  # what its bindings raise has no base of its own
        raise SubjectError(
            f"sherpa-onnx cannot load {str(path)!r}: {error}", fix="export it for sherpa-onnx"
        ) from error


def _features(recogniser: Any) -> Callable[[Batch], list[Any]]:
    """One stream an item; a stream computes its features as it takes sound in."""

    def features(batch: Batch) -> list[Any]:
        streams = []
        for wave, length in zip(batch.data, batch.lengths, strict=True):
            stream = recogniser.create_stream()
            stream.accept_waveform(_RATE, wave[:length])
            streams.append(stream)
        return streams

    return features


def _model(recogniser: Any) -> Callable[[list[Any]], list[Any]]:
    def model(streams: list[Any]) -> list[Any]:
        recogniser.decode_streams(streams)
        return streams

    return model


def _texts(streams: list[Any]) -> list[str]:
    return [stream.result.text for stream in streams]
