"""The torch modules that an object or a call holds, by the names they have there. Imports no torch by itself."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

from speechmeter.core.errors import InputError


def module_type() -> Any:
    """`torch.nn.Module`, or None where torch was not imported: then nothing is a module."""
    torch = sys.modules.get("torch")
    return None if torch is None else torch.nn.Module


def given_modules(given: Any) -> dict[str, Any]:
    """What the user names: a module, several by name, or an object that holds some. Raises InputError for anything
    else."""
    kind = module_type()
    items = given if isinstance(given, Mapping) else _items(given)
    if items is None:
        found = modules_of(given)
        if not found:
            raise InputError(f"modules: {given!r} has no torch module", fix="use modules={'encoder': encoder}")
        return found
    wrong = next((name for name, one in items.items() if kind is None or not isinstance(one, kind)), None)
    if wrong is not None:
        raise InputError(f"modules: {wrong!r} is not a torch module", fix="use modules={'encoder': encoder}")
    return {str(name): one for name, one in items.items()}


def modules_of(holder: Any) -> dict[str, Any]:
    """An object that is a module, under its class; else the modules among its attributes, one level into dicts."""
    kind = module_type()
    if kind is None:
        return {}
    if isinstance(holder, kind):
        return {type(holder).__name__: holder}
    found: dict[str, Any] = {}
    for name, value in vars(holder).items() if hasattr(holder, "__dict__") else ():
        items = _items(value)  # those of a dict or a ModuleDict have names of their own
        named = {name: value} if items is None else items
        found.update({str(key): one for key, one in named.items() if isinstance(one, kind)})
    return found


def modules_in_call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The modules among the arguments of a call, by the names of its parameters; of a method also its object's."""
    kind = module_type()
    if kind is None:
        return {}
    try:
        given = signature(function).bind_partial(*args, **kwargs).arguments
    except (TypeError, ValueError):  # the call itself will say what is wrong with it
        return {}
    own = modules_of(given.pop("self")) if "self" in given else {}
    return {**own, **{name: value for name, value in given.items() if isinstance(value, kind)}}


def _items(value: Any) -> Mapping[str, Any] | None:
    """What a dict or a ModuleDict holds, which is never called itself; None for anything else."""
    torch = sys.modules.get("torch")
    if isinstance(value, dict) or (torch is not None and isinstance(value, torch.nn.ModuleDict)):
        return dict(value.items())
    return None
