"""Counting operators on nested tensors: batches of items of unlike lengths without padding. Imports torch.

In the jagged layout torch runs every operator on one plain tensor that holds all items, and that one is counted. The
strided layout has kernels of its own: such an operator is counted item by item, by the formula for plain tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch.utils.flop_counter import shape_wrapper

from speechmeter.meters.flops.formulas import NESTED_FORMULAS, tensors_of


def is_jagged(types: Iterable[type]) -> bool:
    """Whether one of these classes of tensors is torch's jagged one."""
    return any(kind.__name__ == "NestedTensor" for kind in types)


def is_strided(tensor: torch.Tensor) -> bool:
    """Whether a tensor is nested in the strided layout."""
    return bool(tensor.is_nested) and tensor.layout is torch.strided


def flops_of(registry: Mapping[Any, Any], packet: Any, args: Any, kwargs: Any, out: Any) -> int | None:
    """FLOPs of an operator on nested tensors: the sum over its items. None where it has no formula."""
    formula = registry.get(packet)
    if formula is None and packet in NESTED_FORMULAS:
        formula = shape_wrapper(NESTED_FORMULAS[packet])
    if formula is None:
        return None
    items = next(len(_sizes(tensor)) for tensor in tensors_of((*args, *kwargs.values())) if is_strided(tensor))
    return sum(
        int(
            formula(
                *(_item(value, item) for value in args),
                **{name: _item(value, item) for name, value in kwargs.items()},
                out_val=_item(out, item),
            )
        )
        for item in range(items)
    )


def _sizes(tensor: torch.Tensor) -> list[list[int]]:
    found: list[list[int]] = tensor._nested_tensor_size().tolist()
    return found


def _item(value: Any, item: int) -> Any:
    """A batch of one item, without data, in place of a nested tensor; anything else as it is."""
    if isinstance(value, torch.Tensor) and is_strided(value):
        return torch.empty(1, *_sizes(value)[item], device="meta")
    if isinstance(value, list | tuple):
        return type(value)(_item(one, item) for one in value)
    return value
