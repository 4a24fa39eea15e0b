"""A training step: a task, and its stages data (outside the clock), forward, loss, backward, optimizer. Imports torch.

A task makes data, runs forward and computes a loss. A user's factory returns such an object, or a pair (model, loss)
that becomes one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

import torch

from speechmeter.core.axes import NONE
from speechmeter.core.errors import SubjectError
from speechmeter.core.types import Batch, Case, Stage

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": partial(torch.optim.SGD, lr=1e-6),
    "adam": partial(torch.optim.Adam, lr=1e-6),
    "adamw": partial(torch.optim.AdamW, lr=1e-6),
}
"""With a learning rate so low that weights stay as they were: cost does not depend on it, and no loss diverges."""


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
    """A model that takes one tensor, and `loss(output, batch)`. The input arrives as a tensor on the device."""

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
        """As the user's function computes it."""
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
        fix="the factory must return (model, loss), or an object with the attribute `modules` and the methods `data`, "
        "`forward` and `loss`",
    )


def compile_as_asked(modules: Mapping[str, torch.nn.Module], case: Case) -> None:
    """Compile in place, so that the modules stay what they are. Raises SubjectError where no layer repeats."""
    if case.axes.compile:
        for module in modules.values():
            module.compile()
    elif case.axes.get("compile_blocks"):
        blocks = blocks_of(modules)
        if not blocks:
            raise SubjectError(
                "compile_blocks compiles the layers of a ModuleList, and this model has none",
                key="compile_blocks",
                fix="use `compile: true`",
            )
        for block in blocks:
            block.compile()


def blocks_of(modules: Mapping[str, torch.nn.Module]) -> list[torch.nn.Module]:
    """The members of every list of modules, outermost lists only."""
    found: list[torch.nn.Module] = []
    for root in modules.values():
        for child in root.children():
            found += list(child) if isinstance(child, torch.nn.ModuleList) else blocks_of({"": child})
    return found


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a task is trained. `amp` is the dtype of autocast, None for none."""

    task: Task
    device: str
    amp: torch.dtype | None = None
    accumulate: int = 1
    optimizer: str = NONE

    def autocast(self) -> AbstractContextManager[Any]:
        """Around forward and loss."""
        if self.amp is None:
            return nullcontext()
        around: AbstractContextManager[Any] = torch.autocast(torch.device(self.device).type, dtype=self.amp)
        return around

    def parameters(self) -> list[torch.nn.Parameter]:
        """Those that are trained, each once."""
        every = (p for module in self.task.modules.values() for p in module.parameters() if p.requires_grad)
        return list({id(parameter): parameter for parameter in every}.values())


class Step:
    """What is alive between the stages: pieces still to run, the output of one, its loss. `losses` are for the end."""

    def __init__(self, pieces: list[Any]) -> None:
        self.pieces = pieces
        self.output: Any = None
        self.loss: torch.Tensor | None = None
        self.losses: list[torch.Tensor] = []

    def take_output(self) -> Any:
        """What forward returned; it is not held here any longer, so that its memory can be freed."""
        output, self.output = self.output, None
        return output

    def take_loss(self) -> torch.Tensor:
        """The loss with its graph; it is not held here any longer."""
        loss, self.loss = self.loss, None
        assert loss is not None
        return loss


def step_stages(recipe: Recipe) -> tuple[Stage, ...]:
    """One chain: the stages from forward to backward once for each piece that gradients are added up over."""
    parameters = recipe.parameters()
    optimizer = OPTIMIZERS[recipe.optimizer](parameters) if recipe.optimizer != NONE else None

    def data(batch: Batch) -> Step:
        if optimizer is None:
            for parameter in parameters:  # or they would hold the sum over all calls
                parameter.grad = None
        return Step([recipe.task.data(piece) for piece in pieces(batch, recipe.accumulate)])

    def update(step: Step) -> Step:
        assert optimizer is not None
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return step

    return (
        Stage(name="data", fn=data, clocked=False),
        *(stage for number in range(recipe.accumulate) for stage in _piece(recipe, number)),
        *(() if optimizer is None else (Stage(name="optimizer", fn=update),)),
    )


def _piece(recipe: Recipe, number: int) -> tuple[Stage, Stage, Stage]:
    def forward(step: Step) -> Step:
        with recipe.autocast():
            step.output = recipe.task.forward(step.pieces.pop(0))
        return step

    def loss(step: Step) -> Step:
        with recipe.autocast():
            step.loss = recipe.task.loss(step.take_output()) / recipe.accumulate
        return step

    def backward(step: Step) -> Step:
        loss = step.take_loss()
        step.losses.append(loss.detach())
        loss.backward()
        return step

    again = f" {number + 1}" if number else ""
    return (
        Stage(name=f"forward{again}", fn=forward, modules=recipe.task.modules),
        Stage(name=f"loss{again}", fn=loss),
        Stage(name=f"backward{again}", fn=backward),
    )


def pieces(batch: Batch, count: int) -> list[Batch]:
    """A batch in so many pieces of whole items, as even as they can be. Raises SubjectError where items are too few."""
    if count == 1:
        return [batch]
    if batch.items < count:
        raise SubjectError(
            f"{batch.items} items are too few to split into {count} parts",
            fix="lower `accumulate` or give a larger batch",
        )
    edges = [batch.items * index // count for index in range(count + 1)]
    return [
        replace(
            batch,
            data=batch.data[start:end],
            items=end - start,
            ids=batch.ids[start:end],
            lengths=batch.lengths[start:end],
            references=batch.references[start:end],
            targets=batch.targets[start:end] if batch.targets is not None else None,
        )
        for start, end in pairwise(edges)
    ]
