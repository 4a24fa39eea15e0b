"""Recognisers of sherpa-onnx: `sherpa-onnx:DIR` with one CTC model, or the two graphs of Moonshine, and tokens.txt.

The metadata of a CTC model says of which kind it is. A directory does not say whether its weights were trained: the
option `weights: random` says that they were not.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from speechmeter.core.axes import Axis, Option
from speechmeter.core.errors import SubjectError
from speechmeter.core.protocols import SOUND, Installed, Prepared
from speechmeter.core.types import Batch, Case, Stage
from speechmeter.subjects.common import RATE, SYNTHETIC, WEIGHTS, installed, waves
from speechmeter.subjects.onnx_model import weights_only

_NEEDED = {
    "zipformer2_ctc": (),
    "EncDecCTCModelBPE": ("vocab_size", "subsampling_factor", "normalize_type"),
    "EncDecCTCModel": ("vocab_size", "subsampling_factor", "normalize_type"),
    "EncDecHybridRNNTCTCBPEModel": ("vocab_size", "subsampling_factor", "normalize_type"),
    "wenet_ctc": ("vocab_size", "subsampling_factor"),
}
"""What the metadata of each model_type must contain: sherpa-onnx ends the process where it does not."""
_MOONSHINE = {"encoder": "encoder_model.onnx", "decoder": "decoder_model_merged.onnx"}
"""The graphs of a Moonshine model by what they are."""
_MOONSHINE_KIND = "moonshine"


class SherpaOnnxSubject:
    """`sherpa-onnx:DIR`: features → model → decode."""

    summary = "offline recognisers of sherpa-onnx, CTC and Moonshine: sherpa-onnx:DIR with .onnx files and tokens.txt"
    axes: tuple[Axis, ...] = ()
    options = (Option(name="model", kind=str, help="a .onnx file of the directory, if it has several"), WEIGHTS)
    runs_code = False
    takes = (SOUND,)

    def installed(self) -> Installed:
        """Needs sherpa-onnx, and onnx to read the model's metadata and weights."""
        return installed("sherpa_onnx", "onnx", extra="sherpa-onnx")

    def check(self, case: Case) -> None:
        """One model and its tokens must exist."""
        folder = Path(case.subject.source)
        if not case.subject.source or not folder.is_dir():
            raise SubjectError(
                f"sherpa-onnx: there is no directory {case.subject.source!r}", fix="use the directory of a model"
            )
        _graphs(case)
        if not (folder / "tokens.txt").is_file():
            raise SubjectError(f"{str(folder)!r} contains no tokens.txt", fix="copy it to this directory")

    def unavailable(self, case: Case) -> str | None:
        """Its wheels are for the CPU, and the graph decides the number format."""
        if not case.device.is_cpu:
            return "sherpa-onnx runs on the CPU only: its wheels have no CUDA provider"
        if case.axes.dtype != "float32":
            return "the .onnx file decides the number format: keep `dtype: float32`, and choose the file with `model`"
        if case.axes.compile:
            return "onnxruntime optimises graphs itself: torch.compile does not apply to them"
        return None

    def prepare(self, case: Case, device: str) -> Prepared:
        """Load the recogniser."""
        import sherpa_onnx

        graphs = _graphs(case)
        weights = {name: weights_only(path) for name, path in graphs.items()}
        kind = _MOONSHINE_KIND if graphs.keys() == _MOONSHINE.keys() else _kind(graphs["model"], weights["model"])
        recogniser = _recogniser(kind, graphs, case.axes.threads)

        def features(batch: Batch) -> list[Any]:
            streams = []
            for wave in waves(batch):
                stream = recogniser.create_stream()
                stream.accept_waveform(RATE, wave)  # a stream computes its features as it takes sound in
                streams.append(stream)
            return streams

        def model(streams: list[Any]) -> list[Any]:
            recogniser.decode_streams(streams)
            return streams

        return Prepared(
            stages=(
                Stage(name="features", fn=features),
                Stage(name="model", fn=model, modules=weights),
                Stage(name="decode", fn=lambda streams: [stream.result.text.strip() for stream in streams]),
            ),
            modules=weights,
            notes=(
                f"sherpa-onnx {sherpa_onnx.__version__}, {kind}, greedy search",
                *([SYNTHETIC] if case.subject.options.get("weights") == "random" else []),
            ),
            data_dependent=kind == _MOONSHINE_KIND,
        )


def _graphs(case: Case) -> dict[str, Path]:
    """The files of the model by what they are: the two of Moonshine, else a CTC model alone."""
    folder = Path(case.subject.source)
    pair = {name: folder / file for name, file in _MOONSHINE.items()}
    if case.subject.options.get("model") is None and all(path.is_file() for path in pair.values()):
        return pair
    return {"model": _ctc_file(case)}


def _ctc_file(case: Case) -> Path:
    """The model that is asked for, else the only one of the directory. SubjectError when it has none or several."""
    folder, asked = Path(case.subject.source), case.subject.options.get("model")
    found = sorted(file.name for file in folder.glob("*.onnx"))
    if asked is not None and asked not in found:
        raise SubjectError(
            f"{str(folder)!r} contains no model {asked!r}", key="model", fix=f"it has: {', '.join(found) or 'none'}"
        )
    if asked is None and len(found) > 1:
        raise SubjectError(
            f"{str(folder)!r} contains {len(found)} models", fix=" or ".join(f"use `model: {name}`" for name in found)
        )
    if not found:
        raise SubjectError(f"{str(folder)!r} contains no .onnx file", fix="use a directory with a sherpa-onnx model")
    return folder / str(asked or found[0])


def _kind(path: Path, model: Any) -> str:
    metadata: dict[str, str] = {entry.key: entry.value for entry in model.metadata_props}
    kind = metadata.get("model_type", "")
    if kind not in _NEEDED:
        raise SubjectError(
            f"{str(path)!r} has the unknown model_type {kind!r} in its metadata", fix=f"known are: {', '.join(_NEEDED)}"
        )
    missing = [key for key in _NEEDED[kind] if key not in metadata]
    if missing:
        raise SubjectError(f"{str(path)!r} has no {missing[0]} in its metadata", fix="export it for sherpa-onnx")
    return kind


def _recogniser(kind: str, graphs: Mapping[str, Path], threads: int) -> Any:
    import sherpa_onnx

    make = {"zipformer2_ctc": "from_zipformer_ctc", "wenet_ctc": "from_wenet_ctc", _MOONSHINE_KIND: "from_moonshine_v2"}
    files = {name: str(path) for name, path in graphs.items()}
    folder = next(iter(graphs.values())).parent
    try:
        return getattr(sherpa_onnx.OfflineRecognizer, make.get(kind, "from_nemo_ctc"))(
            **files, tokens=str(folder / "tokens.txt"), num_threads=threads
        )
    except Exception as error:  # what its bindings raise has no base of its own
        raise SubjectError(
            f"sherpa-onnx cannot load {str(folder)!r}: {error}", fix="export it for sherpa-onnx"
        ) from error
