"""The torch modules that an object or a call holds, by the names they have there. Imports no torch by itself."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any


def modules_of(holder: Any) -> dict[str, Any]:
    """An object that is a module, under its class; else the modules among its attributes, one level into dicts."""
    module_type = _module_type()
    if module_type is None:
        return {}
    if isinstance(holder, module_type):
        return {type(holder).__name__: holder}
    found: dict[str, Any] = {}
    for name, value in vars(holder).items() if hasattr(holder, "__dict__") else ():
        found.update(_named(name, value, module_type))
    return found


def modules_in_call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The modules among the arguments of a call, by the names of its parameters; of a method also its object's."""
    module_type = _module_type()
    if module_type is None:
        return {}
    try:
        given = signature(function).bind_partial(*args, **kwargs).arguments
    except (TypeError, ValueError):  # the call itself will say what is wrong with it
        return {}
    own = modules_of(given.pop("self")) if "self" in given else {}
    return {**own, **{name: value for name, value in given.items() if isinstance(value, module_type)}}


def _named(name: str, value: Any, module_type: type) -> dict[str, Any]:
    """A module under its name; those of a dict or a ModuleDict, which is never called itself, under their own."""
    torch = sys.modules["torch"]
    if isinstance(value, dict | torch.nn.ModuleDict):
        return {str(key): one for key, one in value.items() if isinstance(one, module_type)}
    return {name: value} if isinstance(value, module_type) else {}


def _module_type() -> Any:
    torch = sys.modules.get("torch")
    return None if torch is None else torch.nn.Module
