"""The initialisers of an ONNX model, by their shapes and types. Reads the protocol buffer; imports no onnx."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, prod
from typing import Any

_TYPES = {
    1: ("float32", 32), 2: ("uint8", 8), 3: ("int8", 8), 4: ("uint16", 16), 5: ("int16", 16), 6: ("int32", 32),
    7: ("int64", 64), 9: ("bool", 8), 10: ("float16", 16), 11: ("float64", 64), 12: ("uint32", 32), 13: ("uint64", 64),
    14: ("complex64", 64), 15: ("complex128", 128), 16: ("bfloat16", 16), 17: ("float8_e4m3fn", 8),
    18: ("float8_e4m3fnuz", 8), 19: ("float8_e5m2", 8), 20: ("float8_e5m2fnuz", 8), 21: ("uint4", 4), 22: ("int4", 4),
    23: ("float4_e2m1", 4), 24: ("float8_e8m0", 8), 25: ("uint2", 2), 26: ("int2", 2),
}  # fmt: skip
"""Name and bits of TensorProto's element types, by their number."""
_TEXT = 8


@dataclass(frozen=True, kw_only=True)
class Initializer:
    """One constant tensor of a graph."""

    name: str
    elements: int
    dtype: str
    size_bytes: int


def is_model(value: Any) -> bool:
    """Whether this is an `onnx.ModelProto`."""
    descriptor = getattr(type(value), "DESCRIPTOR", None)
    return getattr(descriptor, "full_name", "") == "onnx.ModelProto"


def unknown_types(model: Any) -> set[int]:
    """Element types of initialisers that this file does not know; `initializers` cannot count those."""
    return {int(tensor.data_type) for tensor in _tensors(model) if tensor.data_type not in _TYPES}


def initializers(model: Any) -> Iterator[Initializer]:
    """Every initialiser of the model's graph and of the graphs inside its nodes, text apart; no data file is read."""
    for tensor in _tensors(model):
        dtype, bits = _TYPES[tensor.data_type]
        elements = prod(tensor.dims)
        yield Initializer(name=tensor.name, elements=elements, dtype=dtype, size_bytes=ceil(elements * bits / 8))


def _tensors(model: Any) -> Iterator[Any]:
    inside_functions = (graph for function in model.functions for graph in _graphs(function.node))
    for graph in (model.graph, *inside_functions):
        yield from (tensor for tensor in _of_graph(graph) if tensor.data_type != _TEXT)


def _of_graph(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    yield from (sparse.values for sparse in graph.sparse_initializer)
    for inner in _graphs(graph.node):
        yield from _of_graph(inner)


def _graphs(nodes: Any) -> Iterator[Any]:
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield attribute.g
            yield from attribute.graphs
