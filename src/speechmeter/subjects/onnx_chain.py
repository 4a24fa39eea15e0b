"""The stages of an ONNX graph. Imports onnxruntime and onnx, so only `prepare` imports this."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from speechmeter.core.device import Device
from speechmeter.core.errors import SubjectError
from speechmeter.core.protocols import Prepared
from speechmeter.core.types import Batch, Case, Stage
from speechmeter.subjects.mel import BANDS, array_log_mel, frames_in
from speechmeter.subjects.onnx_file import unreadable, weights_only
from speechmeter.subjects.onnx_model import LAYOUTS

_FLOATS = {"tensor(float)": "float32", "tensor(float16)": "float16"}
_INTEGERS = {"tensor(int64)": "int64", "tensor(int32)": "int32"}
_CUDA = "CUDAExecutionProvider"
_QUIET = 3

Feeds = dict[str, Any]


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


def prepare_chain(case: Case, device: str) -> Prepared:
    """features → model for a graph that takes log-mel, copy → model for one that takes samples."""
    path = Path(case.subject.source)
    weights = weights_only(path)
    session = _session(case, device, path)
    inputs = map_inputs(session.get_inputs(), case.subject.options.get("layout"))
    _check_dtype(inputs.sound, str(case.axes["dtype"]))
    modules = {"model": weights}
    return Prepared(
        stages=(
            Stage(name="features" if inputs.is_features else "copy", fn=feeder(inputs, int(case.axes["threads"]))),
            Stage(name="model", fn=_model(session), modules=modules),
        ),
        modules=modules,
        notes=(
            f"onnxruntime {onnxruntime.__version__}, {session.get_providers()[0]}",
            *([f"fed our log-mel of {BANDS} bands"] if inputs.is_features else []),
        ),
    )


def _session(case: Case, device: str, path: Path) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(case.axes["threads"])
    options.inter_op_num_threads = 1
    options.use_deterministic_compute = bool(case.axes.get("deterministic", False))
    options.log_severity_level = _QUIET
    wanted = _providers(case, device)
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=wanted)
    except Exception as error:  # onnxruntime's errors have no base of their own
        raise unreadable(path, error) from error
    first = wanted[0][0] if isinstance(wanted[0], tuple) else wanted[0]
    if session.get_providers()[0] != first:  # it falls back to the CPU with no more than a line in its log
        raise SubjectError(f"onnxruntime could not start {first}", fix="check its CUDA and cuDNN, or use device: cpu")
    return session


def _providers(case: Case, device: str) -> list[Any]:
    """Those that the plan names, else the device's own; a graph's odd operators may always fall to the CPU."""
    parsed = Device.parse(device)
    usual = [*([_CUDA] if parsed.is_cuda else []), "CPUExecutionProvider"]
    settings = {"device_id": str(parsed.index or 0), "use_tf32": str(int(bool(case.axes.get("tf32"))))}
    named = case.subject.options.get("providers") or usual
    return [(name, settings) if name == _CUDA else name for name in named]


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
        raise SubjectError(f"nothing is known to feed to {_described(others)}", fix="export the graph without it")
    return Inputs(sound=sounds[0], layout=_layout(sounds[0], layout), lengths=lengths[0] if lengths else None)


def _layout(sound: Any, asked: str | None) -> str:
    if len(sound.shape) == 2:
        if asked:
            raise SubjectError(f"{_described([sound])} takes samples and has no layout", fix="remove layout")
        return ""
    middle, last = sound.shape[1:]
    fits = {"frames-bands": last == BANDS, "bands-frames": middle == BANDS, "channel-samples": middle == 1}
    found = [name for name, fit in fits.items() if fit]
    if asked or len(found) == 1:
        return asked or found[0]
    if isinstance(middle, int) or isinstance(last, int):
        raise SubjectError(f"{_described([sound])} does not fit our log-mel of {BANDS} bands", fix="see `layout`")
    raise SubjectError(
        f"{_described([sound])} does not say where its bands are", fix=f"say layout: {' or '.join(LAYOUTS)}"
    )


def _described(inputs: Sequence[Any]) -> str:
    return ", ".join(
        f"{each.name!r} {each.type.removeprefix('tensor(').removesuffix(')')} ({', '.join(map(str, each.shape))})"
        for each in inputs
    )


def _check_dtype(sound: Any, asked: str) -> None:
    takes = _FLOATS[sound.type]
    if takes != asked:
        raise SubjectError(f"the graph takes {takes}, not {asked}", fix=f"use dtype: {takes} or another export")


def feeder(inputs: Inputs, threads: int) -> Callable[[Batch], Feeds]:
    """What turns a batch into the graph's inputs; refuses a batch that its fixed dimensions do not allow."""
    log_mel = array_log_mel(threads)
    dtype = _FLOATS[inputs.sound.type]

    def sound(batch: Batch) -> Any:
        if inputs.is_features:
            frames = log_mel(batch.data)
            return frames.swapaxes(1, 2) if inputs.layout == "bands-frames" else frames
        return batch.data[:, None] if inputs.layout == "channel-samples" else batch.data

    def feed(batch: Batch) -> Feeds:
        data = sound(batch)
        feeds: Feeds = {inputs.sound.name: np.ascontiguousarray(data, dtype=dtype)}
        _check_shape(inputs.sound, data.shape)
        if inputs.lengths is not None:
            counts = [frames_in(length) for length in batch.lengths] if inputs.is_features else batch.lengths
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
            if "allocate memory" in str(error):  # its errors are not Python's: say what this one means
                raise MemoryError(str(error)) from error
            raise

    return first_output
