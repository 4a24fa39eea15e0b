"""ONNX graphs under onnxruntime: `onnx:path/model.onnx`.

The inputs of the graph decide what it is fed: a float input of rank 2 is the waveform, one of rank 3 is our log-mel or
a waveform with a channel, an integer input of rank 1 is the lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from speechmeter.core.axes import Axis, Option
from speechmeter.core.device import Device
from speechmeter.core.errors import SubjectError
from speechmeter.core.protocols import SOUND, Installed, Prepared
from speechmeter.core.types import Batch, Case, Stage
from speechmeter.subjects.common import installed
from speechmeter.subjects.mel import BANDS, HOP, RATE, array_log_mel, frames_in

LAYOUTS = ("frames-bands", "bands-frames", "channel-samples")
"""What order of the last two dimensions of a three-dimensional input can be."""
_CUDA = "CUDAExecutionProvider"
_OF_CUDA = ("CUDA", "Tensorrt", "NvTensorRT")
_FLOATS = {"tensor(float)": "float32", "tensor(float16)": "float16"}
_INTEGERS = {"tensor(int64)": "int64", "tensor(int32)": "int32"}
_DATA = ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data")
_QUIET = 3
FRAMES_A_SECOND = RATE // HOP

Feeds = dict[str, Any]


class OnnxSubject:
    """`onnx:FILE`: features or copy → model."""

    summary = "an ONNX graph under onnxruntime: onnx:path/model.onnx"
    axes: tuple[Axis, ...] = ()
    options = (
        Option(
            name="layout",
            kind=str,
            choices=LAYOUTS,
            help="order of the last two dimensions of a three-dimensional input",
        ),
        Option(
            name="providers",
            kind=list,
            default=[],
            help="execution providers of onnxruntime, for example [CPUExecutionProvider]",
        ),
    )
    runs_code = False
    takes = (SOUND,)

    def installed(self) -> Installed:
        """Needs onnxruntime, and onnx to read the weights."""
        return installed("onnxruntime", "onnx", extra="onnx")

    def check(self, case: Case) -> None:
        """The file must exist, and the options must have a meaning."""
        source = case.subject.source
        if not Path(source).is_file():
            raise SubjectError(
                f"there is no file {source!r}" if source else "onnx: names no model", fix="write onnx:path/model.onnx"
            )

    def unavailable(self, case: Case) -> str | None:
        """torch.compile is not for graphs, and a provider may be missing."""
        if case.axes.compile:
            return "onnxruntime optimises graphs itself: torch.compile does not apply to them"
        on_cuda = case.device.is_cuda
        if named := case.subject.options.get("providers"):
            import onnxruntime

            here = onnxruntime.get_available_providers()
            missing = [name for name in named if name not in here]
            if missing:
                return f"this build of onnxruntime has no {missing[0]}, only {', '.join(here)}"
            if str(named[0]).startswith(_OF_CUDA) is not on_cuda:
                return f"{named[0]} does not run on the requested device {case.device}"
        elif on_cuda:
            # importing onnxruntime to ask would start it: look for the provider's library in the package instead
            spec = find_spec("onnxruntime")
            folders = (spec.submodule_search_locations if spec else None) or []
            if not any(any(Path(folder).glob("capi/*providers_cuda*")) for folder in folders):
                return "this build of onnxruntime has no CUDA: uninstall it, then pip install onnxruntime-gpu"
        return None

    def prepare(self, case: Case, device: str) -> Prepared:
        """Load the graph and map its inputs: features → model for log-mel, copy → model for samples."""
        import onnxruntime

        path = Path(case.subject.source)
        weights = weights_only(path)
        session = _session(case, device, path)
        inputs = map_inputs(session.get_inputs(), case.subject.options.get("layout"))
        takes, asked = _FLOATS[inputs.sound.type], case.axes.dtype
        if takes != asked:
            raise SubjectError(
                f"the input of the graph is {takes}, but `dtype` is {asked}",
                fix=f"use `dtype: {takes}` or export the graph in {asked}",
            )
        modules = {"model": weights}
        name = "features" if inputs.is_features else "copy"
        return Prepared(
            stages=(
                Stage(name=name, fn=feeder(inputs, case.axes.threads)),
                Stage(name="model", fn=_model(session), modules=modules),
            ),
            modules=modules,
            notes=(
                f"onnxruntime {onnxruntime.__version__}, {session.get_providers()[0]}",
                *([f"input: built-in log-mel features with {BANDS} bands"] if inputs.is_features else []),
                *([f"padded to the {fixed} frames of the graph"] if (fixed := inputs.fixed_frames) is not None else []),
            ),
        )


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What a graph is fed: its float input with the layout (empty for rank 2), and its input for lengths if any."""

    sound: Any
    layout: str = ""
    lengths: Any = None

    @property
    def is_features(self) -> bool:
        """Whether it takes frames of bands and not samples."""
        return self.layout in LAYOUTS[:2]

    @property
    def fixed_frames(self) -> int | None:
        """How many frames of features it takes; None where that is open, or it takes samples."""
        frames = self.sound.shape[1 if self.layout == LAYOUTS[0] else 2] if self.is_features else None
        return frames if isinstance(frames, int) else None


def weights_only(path: Path) -> Any:
    """The model of an ONNX file without the data of its weights: shapes and types are enough to count them."""
    import onnx

    try:
        model = onnx.load(str(path), load_external_data=False)
    except Exception as error:  # protobuf's own error class differs between its implementations
        raise _unreadable(path, error) from error
    if not model.graph.node:
        raise SubjectError(f"{str(path)!r} contains no ONNX graph", fix="use a .onnx file")
    for tensor in model.graph.initializer:
        for field in _DATA:
            tensor.ClearField(field)
    return model


def _unreadable(path: Path, error: Exception) -> SubjectError:
    reason = " ".join(str(error).split())[:200]
    return SubjectError(f"{str(path)!r} cannot be loaded: {reason}", fix="use a .onnx file that onnxruntime can run")


def _session(case: Case, device: str, path: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = case.axes.threads
    options.inter_op_num_threads = 1
    options.use_deterministic_compute = case.axes.deterministic
    options.log_severity_level = _QUIET
    parsed = Device.parse(device)
    # without names: the device's own, and always the CPU, since some operators of a graph may run nowhere else
    names = case.subject.options.get("providers") or [*([_CUDA] if parsed.is_cuda else []), "CPUExecutionProvider"]
    settings = {"device_id": str(parsed.index or 0), "use_tf32": str(int(case.axes.tf32))}
    try:
        session = onnxruntime.InferenceSession(
            str(path), options, providers=[(name, settings) if name == _CUDA else name for name in names]
        )
    except Exception as error:  # onnxruntime's errors have no base of their own
        raise _unreadable(path, error) from error
    if session.get_providers()[0] != names[0]:  # it falls back to the CPU with no more than a line in its log
        raise SubjectError(
            f"onnxruntime could not start {names[0]}", fix="check its CUDA and cuDNN, or use `device: cpu`"
        )
    return session


def map_inputs(inputs: Sequence[Any], layout: str | None = None) -> Inputs:
    """Which input gets what, by type and rank. Raises SubjectError for a graph that wants anything else."""
    sounds = [each for each in inputs if each.type in _FLOATS and len(each.shape) in (2, 3)]
    lengths = [each for each in inputs if each.type in _INTEGERS and len(each.shape) == 1]
    if len(sounds) != 1:
        raise SubjectError(
            f"the graph has {len(sounds)} inputs that could take sound: {_described(inputs)}",
            fix="export it with one float input: (batch, samples) or (batch, frames, bands)",
        )
    others = [each for each in inputs if each not in (*sounds, *lengths[:1])]
    if others:
        raise SubjectError(
            f"the graph has inputs other than sound and lengths: {_described(others)}",
            fix="export the graph without them",
        )
    return Inputs(sound=sounds[0], layout=_layout(sounds[0], layout), lengths=lengths[0] if lengths else None)


def _layout(sound: Any, asked: str | None) -> str:
    if len(sound.shape) == 2:
        if asked:
            raise SubjectError(
                f"{_described([sound])} takes samples and no features, so `layout` does not apply",
                fix="remove `layout`",
            )
        return ""
    middle, last = sound.shape[1:]
    fits = {"frames-bands": last == BANDS, "bands-frames": middle == BANDS, "channel-samples": middle == 1}
    found = [name for name, fit in fits.items() if fit]
    if asked or len(found) == 1:
        return asked or found[0]
    either = " or ".join(f"`layout: {name}`" for name in LAYOUTS)
    if isinstance(middle, int) or isinstance(last, int):
        raise SubjectError(
            f"{_described([sound])} does not fit the built-in log-mel features with {BANDS} bands",
            fix=f"export the graph for {BANDS} bands, or use {either}",
        )
    raise SubjectError(f"{_described([sound])} does not show which dimension is bands", fix=f"use {either}")


def _described(inputs: Sequence[Any]) -> str:
    return ", ".join(
        f"{each.name!r} {each.type.removeprefix('tensor(').removesuffix(')')} ({', '.join(map(str, each.shape))})"
        for each in inputs
    )


def feeder(inputs: Inputs, threads: int) -> Callable[[Batch], Feeds]:
    """What turns a batch into the graph's inputs; refuses a batch that its fixed dimensions do not allow.

    Features become as many frames as the graph takes: shorter sound is padded with silence, and the one frame by which
    front-ends differ is cut.
    """
    import numpy as np

    log_mel = array_log_mel(threads)
    dtype = _FLOATS[inputs.sound.type]
    fixed = inputs.fixed_frames

    def features(samples: Any) -> Any:
        if fixed is None:
            return log_mel(samples)
        if (made := frames_in(samples.shape[1])) > fixed + 1:
            raise SubjectError(
                f"the graph takes {fixed} frames ({fixed / FRAMES_A_SECOND:g} s), and the sound has {made}",
                fix="use shorter audio, or export it with dynamic dimensions",
            )
        short = max(0, (fixed - 1) * HOP - samples.shape[1])
        return log_mel(np.pad(samples, ((0, 0), (0, short))))[:, :fixed]

    def sound(batch: Batch) -> Any:
        if inputs.is_features:
            frames = features(batch.data)
            return frames.swapaxes(1, 2) if inputs.layout == "bands-frames" else frames
        return batch.data[:, None] if inputs.layout == "channel-samples" else batch.data

    def feed(batch: Batch) -> Feeds:
        data = sound(batch)
        feeds: Feeds = {inputs.sound.name: np.ascontiguousarray(data, dtype=dtype)}
        _check_shape(inputs.sound, data.shape)
        if inputs.lengths is not None:
            counts = [frames_in(length) for length in batch.lengths] if inputs.is_features else batch.lengths
            counts = counts if fixed is None else [min(count, fixed) for count in counts]
            feeds[inputs.lengths.name] = np.asarray(counts, dtype=_INTEGERS[inputs.lengths.type])
            _check_shape(inputs.lengths, (batch.items,))
        return feeds

    return feed


def _check_shape(each: Any, shape: Sequence[int]) -> None:
    if any(isinstance(fixed, int) and fixed != here for fixed, here in zip(each.shape, shape, strict=True)):
        given = " × ".join(map(str, shape))
        raise SubjectError(
            f"input {_described([each])} is fixed and cannot take {given}", fix="export it with dynamic dimensions"
        )


def _model(session: Any) -> Callable[[Mapping[str, Any]], Any]:
    def first_output(feeds: Mapping[str, Any]) -> Any:
        try:
            return session.run(None, feeds)[0]
        except Exception as error:
            if "allocate memory" in str(error):  # onnxruntime has no error class for this one
                raise MemoryError(str(error)) from error
            raise

    return first_output
