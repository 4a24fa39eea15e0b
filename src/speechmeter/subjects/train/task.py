"""What is trained: an object that makes data, runs forward and computes a loss. Imports torch.

A user's factory returns such an object, or a pair (model, loss) that becomes one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import torch

from speechmeter.core.errors import SubjectError
from speechmeter.core.types import Batch

PAIR = "(model, loss)"
METHODS = ("data", "forward", "loss")


@runtime_checkable
class Task(Protocol):
    """The parts of a step. They are called in this order, each with what the one before returned."""

    @property
    def modules(self) -> Mapping[str, torch.nn.Module]:
        """Root modules by name: what is moved to the device, trained, counted, and given rows."""
        ...

    def data(self, batch: Batch) -> Any:
        """What `forward` takes, on the device of the modules."""
        ...

    def forward(self, inputs: Any) -> Any:
        """What `loss` takes."""
        ...

    def loss(self, outputs: Any) -> torch.Tensor:
        """One number."""
        ...


class PairTask:
    """A model that takes one tensor, and `loss(output, batch)`. What is fed arrives as a tensor on the device."""

    def __init__(self, model: torch.nn.Module, loss: Callable[[Any, Batch], torch.Tensor]) -> None:
        self.modules = {type(model).__name__: model}
        if isinstance(loss, torch.nn.Module):
            self.modules["loss"] = loss
        self._model, self._loss = model, loss

    def data(self, batch: Batch) -> tuple[Batch, Any]:
        """The batch, and its numbers where the model's are; what is not an array is left as it is."""
        own = next(iter(self._model.parameters()), torch.zeros(1))
        if not hasattr(batch.data, "dtype"):
            return batch, batch.data
        numbers = torch.from_numpy(batch.data)
        return batch, numbers.to(own.device, own.dtype if numbers.is_floating_point() else None)

    def forward(self, inputs: tuple[Batch, Any]) -> tuple[Batch, Any]:
        """The model's output, and the batch for the loss."""
        batch, numbers = inputs
        return batch, self._model(numbers)

    def loss(self, outputs: tuple[Batch, Any]) -> torch.Tensor:
        """As the user's function has it."""
        batch, output = outputs
        return self._loss(output, batch)


def as_task(made: Any, where: str) -> Task:
    """What a factory returned, as a task. Raises SubjectError for anything else."""
    if isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], torch.nn.Module) and callable(made[1]):
        return PairTask(*made)
    if isinstance(made, Task):
        return made
    raise SubjectError(
        f"{where} returned {type(made).__name__}, which cannot be trained",
        fix=f"return {PAIR}, or an object with `modules` and the methods {', '.join(METHODS)}",
    )
