"""What holds a model's weights: every tensor under every name it has, packed and wrapped ones unfolded.

No data is looked at, so fake and meta tensors are counted like real ones; what is shared is told by its storage, not
by an address. The parameters meter counts what this finds, and the memory meter adds up the bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from speechmeter.meters import onnx_weights

_SCRIPTED_PACKED = ("_packed_params", "param", "_packed_weight_ih", "_packed_weight_hh")
"""Where a scripted module keeps packed weights: it does not list its attributes."""


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
        if onnx_weights.is_model(module):
            unknown = onnx_weights.unknown_types(module)
            if unknown:
                return f"{name!r} has initialisers of a type that is not known here: {min(unknown)}"
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
    storage = _storage(tensor)
    return Part(
        dtype=_dtype_name(tensor.dtype),
        size_bytes=size_bytes,
        storage=_storage_key(tensor),
        storage_bytes=size_bytes if storage is None else int(storage.nbytes()),
    )


def _region(tensor: Any) -> Hashable:
    """Which elements of which storage: equal for a tensor and its transpose, unlike for two slices of one storage."""
    if _storage(tensor) is None:
        return _storage_key(tensor)
    steps = sorted(zip(map(int, tensor.shape), map(int, tensor.stride()), strict=True))
    return _storage_key(tensor), int(tensor.storage_offset()), tuple(steps)


def _storage_key(tensor: Any) -> Hashable:
    """The storage's own identity; `data_ptr` is 0 for fake and meta tensors."""
    storage = _storage(tensor)
    return ("object", id(tensor)) if storage is None else ("storage", storage._cdata)


def _storage(tensor: Any) -> Any:
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):  # sparse and opaque tensors have none
        return None


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
    """The unpacked tensors are copies that go again: their identity is that of the object that packs them."""
    inside = list(tensors_in(packed))  # alive together, so that two of them cannot have one storage by accident
    distinct = {_region(tensor): tensor for tensor in inside}.values()
    for number, tensor in enumerate(distinct):
        dtype, element_bytes = _packed_as(tensor)
        size_bytes = int(tensor.numel()) * element_bytes
        key = ("packed", owner, number)
        part = Part(dtype=dtype, size_bytes=size_bytes, storage=key, storage_bytes=size_bytes)
        yield Weight(name=f"{name}.{number}", elements=int(tensor.numel()), identity=key, parts=(part,))


def _packed_as(tensor: Any) -> tuple[str, int]:
    """The engines pack int8 and half-precision matrices; the latter unpack to float32. Biases stay as they are."""
    torch = sys.modules["torch"]
    if tensor.dim() > 1 and tensor.dtype == torch.float32:
        return "float16", 2
    return _dtype_name(tensor.dtype), int(tensor.element_size())


def tensors_in(value: Any) -> Iterator[Any]:
    """Tensors of a packed object's state, which nests tuples, lists and other packed objects."""
    torch = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, torch.ScriptObject):
        yield from tensors_in(_state(value))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors_in(item)


def _state(packed: Any) -> Any:
    try:
        return packed.__getstate__()
    except RuntimeError:  # an object of another kind, which says nothing about itself
        return ()


def _of_onnx(name: str, model: Any) -> Iterator[Weight]:
    for number, tensor in enumerate(onnx_weights.initializers(model)):
        key = ("onnx", id(model), number)
        part = Part(dtype=tensor.dtype, size_bytes=tensor.size_bytes, storage=key, storage_bytes=tensor.size_bytes)
        yield Weight(name=f"{name}.{tensor.name}", elements=tensor.elements, identity=key, parts=(part,))
