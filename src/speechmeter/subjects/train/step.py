"""The stages of a training step: data (outside the clock), forward, loss, backward, optimizer. Imports torch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import torch

from speechmeter.core.axes import NONE
from speechmeter.core.errors import SubjectError
from speechmeter.core.types import Batch, Stage
from speechmeter.subjects.train.task import Task

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": partial(torch.optim.SGD, lr=1e-6),
    "adam": partial(torch.optim.Adam, lr=1e-6),
    "adamw": partial(torch.optim.AdamW, lr=1e-6),
}
"""With a rate so low that weights stay what they were: cost does not depend on it, and no loss grows to infinity."""


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
        """What forward gave, which is then held here no longer."""
        output, self.output = self.output, None
        return output

    def take_loss(self) -> torch.Tensor:
        """The loss with its graph, which is then held here no longer."""
        loss, self.loss = self.loss, None
        assert loss is not None
        return loss


def step_stages(recipe: Recipe) -> tuple[Stage, ...]:
    """One chain: the stages from forward to backward once for each piece that gradients are added up over."""
    optimizer = OPTIMIZERS[recipe.optimizer](recipe.parameters()) if recipe.optimizer != NONE else None
    return (
        _data(recipe, optimizer),
        *(stage for number in range(recipe.accumulate) for stage in _piece(recipe, number)),
        *(() if optimizer is None else (_update(optimizer),)),
    )


def _data(recipe: Recipe, optimizer: torch.optim.Optimizer | None) -> Stage:
    parameters = recipe.parameters() if optimizer is None else []

    def data(batch: Batch) -> Step:
        for parameter in parameters:  # or they would hold the sum over all calls
            parameter.grad = None
        return Step([recipe.task.data(piece) for piece in pieces(batch, recipe.accumulate)])

    return Stage(name="data", fn=data, clocked=False)


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


def _update(optimizer: torch.optim.Optimizer) -> Stage:
    def update(step: Step) -> Step:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return step

    return Stage(name="optimizer", fn=update)


def pieces(batch: Batch, count: int) -> list[Batch]:
    """A batch in so many pieces of whole items, as even as they can be. Raises SubjectError where items are too few."""
    if count == 1:
        return [batch]
    if batch.items < count:
        raise SubjectError(f"{batch.items} items cannot be split into {count} pieces", fix="lower accumulate")
    edges = [batch.items * place // count for place in range(count + 1)]
    return [_part(batch, slice(start, end)) for start, end in pairwise(edges)]


def _part(batch: Batch, part: slice) -> Batch:
    targets = batch.targets[part] if batch.targets is not None else None
    return replace(
        batch,
        data=batch.data[part],
        items=part.stop - part.start,
        ids=batch.ids[part],
        lengths=batch.lengths[part],
        references=batch.references[part],
        targets=targets,
    )
