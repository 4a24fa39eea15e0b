"""What an ONNX file says of itself, without the data of its weights. Imports onnx."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx

from speechmeter.core.errors import SubjectError

_DATA = ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data")


def weights_only(path: Path) -> Any:
    """The model without the data of its initialisers: shapes and types are enough to count them."""
    try:
        model = onnx.load(str(path), load_external_data=False)
    except Exception as error:  # protobuf's own error class differs between its implementations
        raise unreadable(path, error) from error
    if not model.graph.node:
        raise SubjectError(f"{str(path)!r} holds no ONNX graph", fix="name a .onnx file")
    for tensor in model.graph.initializer:
        for field in _DATA:
            tensor.ClearField(field)
    return model


def unreadable(path: Path, error: Exception) -> SubjectError:
    """The one line for a file that cannot be loaded."""
    reason = " ".join(str(error).split())[:200]
    return SubjectError(f"{str(path)!r} cannot be loaded: {reason}", fix="name a .onnx file that onnxruntime can run")
