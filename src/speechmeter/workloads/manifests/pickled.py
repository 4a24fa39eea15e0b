"""The `.npy` lists of fairseq's benchmark: a pickled list of `{id, net_input: {src_tokens, src_lengths}}`.

Nothing that the pickle asks for is run. Every name in it is looked up in a short table of classes of ours, which keep
bytes, a dtype and a shape, and check them before numpy sees them. numpy's own classes accept a state that can make them
read foreign memory, and torch's own loader of storages would run a pickle nested inside the bytes.
"""

from __future__ import annotations

import pickle
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from math import prod
from pathlib import Path
from tokenize import TokenError
from typing import Any, BinaryIO

from speechmeter.core.errors import InputError
from speechmeter.workloads.manifests.lines import unreadable
from speechmeter.workloads.manifests.utterance import Refused, Utterance

_LARGEST_FILE = 4 << 30
"""Bytes. A pickle is one object, and is held as a whole."""
_FORM = "a list of {id, net_input: {src_tokens, src_lengths}}"
_NUMBERS = "biuf"  # kinds of dtype that are allowed: truth values, whole and floating numbers
_LEGACY = b"\x80"  # how torch's old format begins, which pickles of tensors hold; the new one is a zip file


def read(path: Path, root: Path | None) -> Iterator[Utterance | Refused]:
    """An utterance for each item, its array not made yet. Raises InputError; nothing in the file is ever run."""
    for index, item in enumerate(_items(path)):
        fields = item if isinstance(item, Mapping) else {}
        given, inputs, text = fields.get("id"), fields.get("net_input"), fields.get("text")
        name = str(given) if isinstance(given, str | int) and not isinstance(given, bool) else f"item {index}"
        array = inputs.get("src_tokens") if isinstance(inputs, Mapping) else None
        if isinstance(array, Stored):
            yield Utterance(id=name, array=array, text=text if isinstance(text, str) else None)
        else:
            yield Refused(id=name, reason="net_input.src_tokens is missing or is not an array or tensor")


def _items(path: Path) -> list[Any]:
    """The list in the file, read by numpy's own header and our own unpickler."""
    from numpy.lib import format as npy

    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise InputError(
                f"{str(path)!r} is larger than {_LARGEST_FILE >> 30} GiB", key="data", fix="split the list"
            )
        with path.open("rb") as file:
            version = npy.read_magic(file)
            header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            _, _, dtype = header(file)
            if not dtype.hasobject:
                raise InputError(f"{str(path)!r} holds only numbers", key="data", fix=f"save {_FORM}")
            found = load(file)
    except (OSError, ValueError, EOFError, SyntaxError, TokenError) as error:  # numpy parses the header as Python
        raise unreadable(path, error) from error
    objects = found.raw if isinstance(found, _Array) else found
    if not isinstance(objects, list):
        raise InputError(f"{str(path)!r} does not hold a list", key="data", fix=f"save {_FORM}")
    return objects


def load(file: BinaryIO) -> Any:
    """The object that a pickle describes, arrays as `Stored`. Raises InputError; nothing of it is ever run."""
    try:
        return _Reader(file).load()
    except InputError:
        raise
    except MemoryError:
        raise _refusal("it asks for more memory than there is") from None
    except Exception as error:  # a broken pickle raises whatever its next byte happens to mean
        raise _refusal(f"it is broken: {error}") from error


class Stored(ABC):
    """An array or a tensor that is not made yet."""

    @abstractmethod
    def numpy(self) -> Any:
        """The array, of numbers alone. Raises ValueError when its parts do not fit together."""


class _Name:
    """What a pickle gets for a name of the table. It can be called; a pickle that changes it changes nothing else."""

    __slots__ = ("made",)

    def __init__(self, made: Callable[..., Any]) -> None:
        self.made = made

    def __call__(self, *arguments: Any) -> Any:
        return self.made(*arguments)


class _Dtype:
    """Replaces numpy.dtype: a code such as `f4`, and the byte order that follows as its state."""

    def __init__(self, code: Any, *_: Any) -> None:
        self.code, self.order = str(code), "="

    def __setstate__(self, state: Any) -> None:
        self.order = str(state[1])

    def made(self) -> Any:
        import numpy as np

        plain = np.dtype(self.code if self.order in "=|" else self.order + self.code)
        if plain.kind not in _NUMBERS:
            raise ValueError(f"an array of {plain} instead of numbers")
        return plain


class _Array(Stored):
    """Replaces numpy.ndarray; an array of objects is the list of them."""

    def __init__(self, shape: Any = (), dtype: Any = None, raw: Any = b"", fortran: Any = False) -> None:
        self.shape, self.dtype, self.raw, self.fortran = shape, dtype, raw, fortran

    def __setstate__(self, state: Any) -> None:
        _, self.shape, self.dtype, self.fortran, self.raw = state

    def numpy(self) -> Any:
        import numpy as np

        if not isinstance(self.dtype, _Dtype) or not isinstance(self.raw, bytes | bytearray):
            raise ValueError("an array without numbers")
        flat = np.frombuffer(self.raw, dtype=self.dtype.made())
        return flat.reshape(self.shape, order="F" if self.fortran else "C")


class _Tensor(Stored):
    """Replaces a torch tensor: the bytes of its storage, and its shape and strides."""

    def __init__(self, storage: Any, offset: Any, size: Any, stride: Any, *_: Any) -> None:
        self._storage, self._offset, self._size, self._stride = storage, offset, tuple(size), tuple(stride)

    def numpy(self) -> Any:
        import numpy as np

        if not isinstance(self._storage, _Storage):
            raise ValueError("a tensor without a storage")
        flat = self._storage.numpy()
        numbers = (*self._size, *self._stride, self._offset)
        if not all(type(number) is int and number >= 0 for number in numbers) or len(self._size) != len(self._stride):
            raise ValueError("a tensor whose shape is invalid")
        reach = sum((size - 1) * stride for size, stride in zip(self._size, self._stride, strict=True))
        if prod(self._size) > len(flat) or self._offset + reach >= max(1, len(flat)):
            raise ValueError("a tensor that reaches beyond its storage")
        strides = tuple(stride * flat.itemsize for stride in self._stride)
        return np.ascontiguousarray(np.lib.stride_tricks.as_strided(flat[self._offset :], self._size, strides))


class _Storage:
    """Replaces torch's loader of storages: bytes that torch reads with `weights_only`."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def numpy(self) -> Any:
        try:
            import torch
        except ImportError:
            raise ValueError("a torch tensor, and torch is not installed: pip install 'speechmeter[torch]'") from None
        if not isinstance(self._raw, bytes) or not self._raw.startswith(_LEGACY):
            raise ValueError("a tensor whose storage is not torch's")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about a class that torch itself puts into such pickles
                storage = torch.load(BytesIO(self._raw), map_location="cpu", weights_only=True)
                tensor = torch.tensor([], dtype=storage.dtype).set_(storage.untyped())
                return (tensor.float() if tensor.is_floating_point() else tensor).numpy()
        except Exception as error:
            why = str(error).partition("\n")[0]
            raise ValueError(f"a tensor whose storage torch cannot load with weights_only=True: {why}") from error


def _reconstruct(subtype: Any, shape: Any, _: Any) -> _Array:
    if not isinstance(subtype, _Name) or subtype.made is not _Array:
        raise _refusal("it contains an array of a class that is not numpy's")
    return _Array(shape)


def _latin1(text: Any, encoding: Any) -> bytes:
    """How protocol 2 writes bytes."""
    if not isinstance(text, str) or encoding != "latin1":
        raise _refusal("it encodes text in an unusual way (only latin1 is allowed)")
    return text.encode("latin1")


_NUMPY: dict[tuple[str, str], Callable[..., Any]] = {
    (f"{package}.{module}", name): made
    for package in ("numpy.core", "numpy._core")
    for module, name, made in (
        ("multiarray", "_reconstruct", _reconstruct),
        ("multiarray", "scalar", lambda dtype, raw: _Array((), dtype, raw)),
        ("numeric", "_frombuffer", lambda raw, dtype, shape, order: _Array(shape, dtype, raw, order == "F")),
    )
}
_ALLOWED: dict[tuple[str, str], Callable[..., Any]] = {
    **_NUMPY,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _latin1,
    ("collections", "OrderedDict"): lambda items=(): dict(items),
    ("torch._utils", "_rebuild_tensor_v2"): _Tensor,
    ("torch.storage", "_load_from_bytes"): _Storage,
}


class _Reader(pickle._Unpickler):
    """The unpickler in Python: that in C makes a table as long as the largest number that a pickle gives to an object,
    64 GB for a file of a hundred bytes. Lists of arrays have few objects, so that both take as long."""

    def find_class(self, module: str, name: str) -> Any:
        """The replacement of a name of the table."""
        made = _ALLOWED.get((module, name))
        if made is None:
            raise _refusal(f"it uses {module}.{name}, which is not an array, a tensor or a plain container")
        return _Name(made)


def _refusal(why: str) -> InputError:
    return InputError(
        f"the pickle file is not loaded, because {why}",
        key="data",
        fix="save plain arrays or tensors; nothing in the file was run",
    )
