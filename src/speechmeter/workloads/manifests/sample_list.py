"""The `.npy` lists of fairseq's benchmark: a pickled list of `{id, net_input: {src_tokens, src_lengths}}`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from tokenize import TokenError
from typing import Any

from speechmeter.core.errors import InputError
from speechmeter.workloads.manifests import unpickle
from speechmeter.workloads.manifests.lines import unreadable
from speechmeter.workloads.manifests.utterance import Refused, Utterance

_LARGEST_FILE = 4 << 30
"""Bytes: a pickle is one object, and held as a whole."""
_FORM = "a list of {id, net_input: {src_tokens, src_lengths}}"


def read(path: Path, root: Path | None) -> Iterator[Utterance | Refused]:
    """An utterance an item, its numbers not made yet; a pickle is one object, so the file is read as a whole."""
    for place, item in enumerate(_items(path)):
        name = str(item["id"]) if isinstance(item, Mapping) and _is_plain(item.get("id")) else f"item {place}"
        inputs = item.get("net_input") if isinstance(item, Mapping) else None
        array = inputs.get("src_tokens") if isinstance(inputs, Mapping) else None
        if not isinstance(array, unpickle.Stored):
            yield Refused(id=name, reason="no array or tensor net_input.src_tokens")
            continue
        text = item.get("text")
        yield Utterance(id=name, array=array, text=text if isinstance(text, str) else None)


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _items(path: Path) -> list[Any]:
    """The list in the file, read by numpy's own header and our own unpickler."""
    from numpy.lib import format as npy

    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise InputError(f"{str(path)!r} holds over {_LARGEST_FILE >> 30} GiB", where="data", fix="split it")
        with path.open("rb") as file:
            version = npy.read_magic(file)
            header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            _, _, dtype = header(file)
            if not dtype.hasobject:
                raise InputError(f"{str(path)!r} holds numbers alone", where="data", fix=f"save {_FORM}")
            found = unpickle.load(file)
    except (OSError, ValueError, EOFError, SyntaxError, TokenError) as error:  # numpy parses the header as Python
        raise unreadable(path, error) from error
    objects = unpickle.as_list(found)
    if objects is None:
        raise InputError(f"{str(path)!r} holds no list", where="data", fix=f"save {_FORM}")
    return objects
