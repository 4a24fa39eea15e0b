"""What holds a model's weights: every tensor under every name it has, packed and wrapped ones unfolded.

No data is looked at, so fake and meta tensors are counted like real ones; what is shared is known by its storage, not
by an address. Initialisers of ONNX models are read from the protocol buffer, without the package onnx. The parameters
meter counts what this finds, and the memory meter adds up the bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import ceil, prod
from typing import Any

_SCRIPTED_PACKED = ("_packed_params", "param", "_packed_weight_ih", "_packed_weight_hh")
"""Where a scripted module keeps packed weights: it does not list its attributes."""
_ONNX_TYPES = {
    1: ("float32", 32), 2: ("uint8", 8), 3: ("int8", 8), 4: ("uint16", 16), 5: ("int16", 16), 6: ("int32", 32),
    7: ("int64", 64), 9: ("bool", 8), 10: ("float16", 16), 11: ("float64", 64), 12: ("uint32", 32), 13: ("uint64", 64),
    14: ("complex64", 64), 15: ("complex128", 128), 16: ("bfloat16", 16), 17: ("float8_e4m3fn", 8),
    18: ("float8_e4m3fnuz", 8), 19: ("float8_e5m2", 8), 20: ("float8_e5m2fnuz", 8), 21: ("uint4", 4), 22: ("int4", 4),
    23: ("float4_e2m1", 4), 24: ("float8_e8m0", 8), 25: ("uint2", 2), 26: ("int2", 2),
}  # fmt: skip
"""Name and bits of ONNX's TensorProto's element types, by their number."""
_ONNX_TEXT = 8


@dataclass(frozen=True, kw_only=True)
class Part:
    """A block that a weight lies in. Equal `storage` means the same block; it may be larger than the weight."""

    dtype: str
    size_bytes: int
    storage: Hashable
    storage_bytes: int


@dataclass(frozen=True, kw_only=True)
class Weight:
    """One tensor under one name. Equal `identity` means the same tensor under another name."""

    name: str
    elements: int
    identity: Hashable
    parts: tuple[Part, ...]
    buffer: bool = False
    trainable: bool = False

    @property
    def size_bytes(self) -> int:
        """Bytes of its own elements, whatever they are held as."""
        return sum(part.size_bytes for part in self.parts)


def uncountable(modules: Mapping[str, Any]) -> str | None:
    """Why the weights of these cannot be counted; None when they can."""
    for name, module in modules.items():
        descriptor = getattr(type(module), "DESCRIPTOR", None)
        if getattr(descriptor, "full_name", "") == "onnx.ModelProto":
            unknown = {int(t.data_type) for t in _onnx_tensors(module) if t.data_type not in _ONNX_TYPES}
            if unknown:
                return f"{name!r} has initialisers of the unknown ONNX type {min(unknown)}"
        elif not _is_torch(module):
            return f"{name!r} is a {type(module).__name__}, neither a torch module nor an ONNX model"
    return None


def weights_of(modules: Mapping[str, Any]) -> list[Weight]:
    """All weights of torch modules and ONNX models, under every name; ask `uncountable` first."""
    found: list[Weight] = []
    for name, module in modules.items():
        found += _of_torch(module) if _is_torch(module) else _of_onnx(name, module)
    return found


def children_of(module: Any) -> dict[str, Any]:
    """The parts of a module one level down, by name; an ONNX model has none."""
    return dict(module.named_children()) if _is_torch(module) else {}


def once(weights: Iterable[Weight]) -> list[Weight]:
    """Each tensor once, under the first of its names."""
    firsts: dict[Hashable, Weight] = {}
    for weight in weights:
        firsts.setdefault(weight.identity, weight)
    return list(firsts.values())


def held_bytes(weights: Iterable[Weight]) -> int:
    """Memory that the weights keep from being freed: each storage once and whole."""
    storages = {part.storage: part.storage_bytes for weight in weights for part in weight.parts}
    return sum(storages.values())


def _is_torch(module: Any) -> bool:
    torch = sys.modules.get("torch")  # a module of torch cannot be here without it
    return torch is not None and isinstance(module, torch.nn.Module)


def _of_torch(module: Any) -> Iterator[Weight]:
    for name, tensor in module.named_parameters(remove_duplicate=False):
        yield _tensor(name, tensor, trainable=tensor.requires_grad)
    for name, tensor in module.named_buffers(remove_duplicate=False):
        yield _tensor(name, tensor, buffer=True)
    for path, part in module.named_modules(remove_duplicate=False):
        yield from _packed_in(path, part)


def _tensor(name: str, tensor: Any, **kind: bool) -> Weight:
    leaves = list(_leaves(tensor))
    return Weight(
        name=name,
        elements=int(tensor.numel()),
        identity=tuple(_region(leaf) for leaf in leaves),
        parts=tuple(_part(leaf) for leaf in leaves),
        **kind,
    )


def _leaves(tensor: Any) -> Iterator[Any]:
    """The plain tensors inside a wrapper (torchao's quantised ones, a distributed one), or the tensor itself."""
    flatten = getattr(tensor, "__tensor_flatten__", None)
    if flatten is None:
        yield tensor
        return
    names, _ = flatten()
    for name in names:
        yield from _leaves(getattr(tensor, name))


def _part(tensor: Any) -> Part:
    size_bytes = int(tensor.numel()) * int(tensor.element_size())
    key, storage = _storage(tensor)
    return Part(
        dtype=_dtype_name(tensor.dtype),
        size_bytes=size_bytes,
        storage=key,
        storage_bytes=size_bytes if storage is None else int(storage.nbytes()),
    )


def _region(tensor: Any) -> Hashable:
    """Which elements of which storage: equal for a tensor and its transpose, unlike for two slices of one storage."""
    key, storage = _storage(tensor)
    if storage is None:
        return key
    steps = sorted(zip(map(int, tensor.shape), map(int, tensor.stride()), strict=True))
    return key, int(tensor.storage_offset()), tuple(steps)


def _storage(tensor: Any) -> tuple[Hashable, Any]:
    """The storage and its own identity; `data_ptr` is 0 for fake and meta tensors."""
    try:
        storage = tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):  # sparse and opaque tensors have none
        return ("object", id(tensor)), None
    return ("storage", storage._cdata), storage


def _dtype_name(dtype: Any) -> str:
    """`float32`, `int8`; torch's quantised types by what they are stored as."""
    name = str(dtype).removeprefix("torch.")
    return name.removeprefix("q") if name.startswith(("qint", "quint")) else name


def _packed_in(path: str, module: Any) -> Iterator[Weight]:
    """Weights that a quantised module packed into objects of its engine, where no parameter is left of them."""
    torch = sys.modules["torch"]
    scripted = isinstance(module, torch.jit.ScriptModule)
    for name in _SCRIPTED_PACKED if scripted else vars(module):
        held = getattr(module, name, None)
        if isinstance(held, torch.ScriptObject):
            owner = (id(module), name) if scripted else id(held)  # a scripted module hands out a new object each time
            yield from _unpacked(f"{path}.{name}".lstrip("."), held, owner)


def _unpacked(name: str, packed: Any, owner: Hashable) -> Iterator[Weight]:
    """The unpacked tensors are copies that are freed again: their identity is that of the object that packs them."""
    torch = sys.modules["torch"]
    inside = list(tensors_in(packed))  # alive together, so that two of them cannot have one storage by accident
    distinct = {_region(tensor): tensor for tensor in inside}.values()
    for number, tensor in enumerate(distinct):
        dtype, element_bytes = _dtype_name(tensor.dtype), int(tensor.element_size())
        if tensor.dim() > 1 and tensor.dtype == torch.float32:
            # Engines pack matrices as int8 or half precision. The latter unpack to float32; biases stay as they are.
            dtype, element_bytes = "float16", 2
        size_bytes = int(tensor.numel()) * element_bytes
        key = ("packed", owner, number)
        part = Part(dtype=dtype, size_bytes=size_bytes, storage=key, storage_bytes=size_bytes)
        yield Weight(name=f"{name}.{number}", elements=int(tensor.numel()), identity=key, parts=(part,))


def tensors_in(value: Any) -> Iterator[Any]:
    """Tensors of a packed object's state, which nests tuples, lists and other packed objects."""
    torch = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, torch.ScriptObject):
        with suppress(RuntimeError):  # an object of another kind, which has no state to ask for
            yield from tensors_in(value.__getstate__())
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors_in(item)


def _of_onnx(name: str, model: Any) -> Iterator[Weight]:
    for number, tensor in enumerate(_onnx_tensors(model)):
        dtype, bits = _ONNX_TYPES[tensor.data_type]
        elements = prod(tensor.dims)
        size_bytes = ceil(elements * bits / 8)
        key = ("onnx", id(model), number)
        part = Part(dtype=dtype, size_bytes=size_bytes, storage=key, storage_bytes=size_bytes)
        yield Weight(name=f"{name}.{tensor.name}", elements=elements, identity=key, parts=(part,))


def _onnx_tensors(model: Any) -> Iterator[Any]:
    """Every initialiser of the model's graph and of the graphs inside its nodes, except text; no data file is read."""

    def of_graph(graph: Any) -> Iterator[Any]:
        yield from graph.initializer
        yield from (sparse.values for sparse in graph.sparse_initializer)
        for inner in inside(graph.node):
            yield from of_graph(inner)

    def inside(nodes: Any) -> Iterator[Any]:
        for node in nodes:
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    yield attribute.g
                yield from attribute.graphs

    graphs = [model.graph, *(graph for function in model.functions for graph in inside(function.node))]
    return (tensor for graph in graphs for tensor in of_graph(graph) if tensor.data_type != _ONNX_TEXT)
