"""The stages of a loss alone and of a whole step: random tensors for a batch of shapes, joiner, loss, backward.

Stages hand one `Call` on and take out of it what the next one needs, because whoever runs a chain holds the outputs of
all its stages: a tensor that is in two of them would stay in memory although nothing needs it. Imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch

from speechmeter.core.errors import SubjectError
from speechmeter.core.types import Batch, Stage
from speechmeter.subjects.losses.call import Exact, Joint, Labels, Pruned
from speechmeter.subjects.losses.known import FRAMES, PACKED, Known

WIDTH = 512
"""Outputs of encoder and predictor, as in the original study."""


class Call:
    """What is alive between the stages of one call.

    `leaves` are the tensors that take a gradient: the logits, or encoder and predictor; `kept` is what a caller holds
    although nothing needs it; `losses` are the values of the loss, to be read afterwards.
    """

    def __init__(self, labels: Labels, *leaves: torch.Tensor) -> None:
        self.labels = labels
        self.leaves = leaves
        self.ranges: Any = None
        self.logits: torch.Tensor | None = None
        self.loss: torch.Tensor | None = None
        self.losses: torch.Tensor | None = None
        self.kept: list[Any] = []

    @property
    def sides(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The outputs of encoder and predictor."""
        encoder, predictor = self.leaves
        return encoder, predictor

    def take_logits(self) -> torch.Tensor:
        """The logits; they are not held here any longer."""
        logits, self.logits = self.logits, None
        assert logits is not None
        return logits

    def take_loss(self) -> torch.Tensor:
        """The loss with its graph; it is not held here any longer."""
        loss, self.loss = self.loss, None
        assert loss is not None
        return loss


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a call is made. With `keep` the caller holds the joiner's input and the logits while backward runs."""

    known: Known
    vocabulary: int
    dtype: torch.dtype
    device: str
    seed: int = 0
    keep: bool = False
    states: int = 5

    @property
    def outputs(self) -> int:
        """Outputs of the joiner: those of the ids, and what a loss has beside them."""
        return self.vocabulary + self.known.outputs_beside_ids

    def draw(self) -> torch.Generator:
        """Random numbers from the beginning: the same tensors for the same shapes."""
        return torch.Generator(device=self.device).manual_seed(self.seed)

    def labels(self, batch: Batch, draw: torch.Generator) -> Labels:
        """Random targets for the shapes of a batch."""
        return Labels.drawn(sizes_of(batch), self.vocabulary, self.known.integers[0], draw)

    def leaf(self, shape: tuple[int, ...], draw: torch.Generator) -> torch.Tensor:
        """Uniform numbers that take a gradient."""
        return torch.rand(shape, generator=draw, device=self.device, dtype=self.dtype, requires_grad=True)


def sizes_of(batch: Batch) -> tuple[tuple[int, int], ...]:
    """The pairs (T, U) of a batch of shapes. Raises SubjectError for any other batch."""
    shape: tuple[int, ...] = getattr(batch.data, "shape", ())
    if len(shape) != 2 or shape[1] != 2 or getattr(batch.data.dtype, "kind", "") != "i":
        raise SubjectError("a loss needs shapes (T frames, U labels), not sound or text", fix="add `shapes`")
    return tuple((int(frames), int(labels)) for frames, labels in batch.data.tolist())


def loss_stages(recipe: Recipe, loss: Exact) -> tuple[Stage, ...]:
    """The loss alone, on logits that are given."""

    def make(batch: Batch) -> Call:
        draw = recipe.draw()
        labels = recipe.labels(batch, draw)
        rows = (sum(t * (u + 1) for t, u in labels.sizes),) if recipe.known.layout == PACKED else labels.padded
        logits = recipe.leaf((*rows, recipe.outputs), draw)
        call = Call(labels, logits)
        call.logits = logits
        return call

    return (
        Stage(name="input", fn=make, clocked=False),
        _loss(lambda call: loss(call.take_logits(), call.labels)),
        _BACKWARD,
    )


def step_stages(recipe: Recipe, output: torch.nn.Module, loss: Exact) -> tuple[Stage, ...]:
    """Joiner, loss and backward, from outputs of an encoder and a predictor."""

    def add(call: Call) -> torch.Tensor:
        encoder, predictor = call.sides
        if recipe.known.layout == FRAMES:
            return encoder
        if recipe.known.layout != PACKED:
            return encoder.unsqueeze(2) + predictor.unsqueeze(1)
        # only true cells, so that the joiner never computes padding
        rows = zip(encoder.unbind(0), predictor.unbind(0), call.labels.sizes, strict=True)
        return torch.cat([(e[:t].unsqueeze(1) + p[: u + 1].unsqueeze(0)).flatten(0, 1) for e, p, (t, u) in rows])

    return (
        _input(recipe, output),
        _joiner(recipe, output, add),
        _loss(lambda call: loss(call.take_logits(), call.labels)),
        _BACKWARD,
    )


def pruned_stages(
    recipe: Recipe, output: torch.nn.Module, simple: torch.nn.ModuleDict | None, pruned: Pruned
) -> tuple[Stage, ...]:
    """Ranges by the simple loss, joiner in range, pruned loss, backward of the pruned loss.

    `simple` projects both sides to the vocabulary; without it the simple loss takes them as they are.
    """
    return (
        _input(recipe, output),
        _prune(recipe, simple, pruned.ranges),
        _joiner(recipe, output, lambda call: pruned.join(*call.sides, call.ranges, recipe.states)),
        _loss(lambda call: pruned.loss(call.take_logits(), call.labels, call.ranges)),
        _BACKWARD,
    )


def joint_stages(
    recipe: Recipe, output: torch.nn.Linear, simple: torch.nn.ModuleDict | None, joint: Joint
) -> tuple[Stage, ...]:
    """Ranges where the loss is pruned, then joiner and loss at once, and backward."""

    def loss(call: Call) -> torch.Tensor:
        return joint.loss((*call.sides, output.weight, output.bias), call.labels, call.ranges, recipe.states)

    prune = () if joint.ranges is None else (_prune(recipe, simple, joint.ranges),)
    return (_input(recipe, output), *prune, _loss(loss, {"joiner": output}), _BACKWARD)


def _prune(recipe: Recipe, simple: torch.nn.ModuleDict | None, ranges: Callable[..., tuple[Any, Any]]) -> Stage:
    def prune(call: Call) -> Call:
        encoder, predictor = call.sides
        if simple is not None:
            encoder, predictor = simple["encoder"](encoder), simple["predictor"](predictor)
        call.ranges, found = ranges(encoder, predictor, call.labels, recipe.states)
        if recipe.keep:
            call.kept.append(found)
        return call

    return Stage(name="prune", fn=prune, modules={} if simple is None else {"simple": simple})


def _input(recipe: Recipe, output: torch.nn.Module) -> Stage:
    def make(batch: Batch) -> Call:
        output.zero_grad(set_to_none=True)  # or weights would hold the sum over all calls
        draw = recipe.draw()
        labels = recipe.labels(batch, draw)
        items, frames, states = labels.padded
        encoder, predictor = (recipe.leaf((items, length, WIDTH), draw) for length in (frames, states))
        return Call(labels, encoder, predictor)

    return Stage(name="input", fn=make, clocked=False)


def _joiner(recipe: Recipe, output: torch.nn.Module, join: Callable[[Call], torch.Tensor]) -> Stage:
    def joiner(call: Call) -> Call:
        joined = join(call)
        hidden = torch.tanh(joined)
        if recipe.keep:
            call.kept.append(joined)
        del joined  # the backward of tanh needs its result alone
        call.logits = output(hidden)
        if recipe.keep:
            call.kept.append(call.logits)
        return call

    return Stage(name="joiner", fn=joiner, modules={"joiner": output})


def _loss(compute: Callable[[Call], torch.Tensor], modules: Mapping[str, Any] = MappingProxyType({})) -> Stage:
    def loss(call: Call) -> Call:
        call.loss = compute(call)
        return call

    return Stage(name="loss", fn=loss, modules=modules)


def _backward(call: Call) -> Call:
    loss = call.take_loss()
    call.losses = loss.detach()
    loss.sum().backward()
    return call


_BACKWARD = Stage(name="backward", fn=_backward)
