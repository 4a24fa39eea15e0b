"""The losses with their joiner: logits = Linear(activation(encoder + predictor)), which a GPU never holds whole.

On a GPU with triton the joiner is computed a chunk of true cells at a time, and again in the backward pass. Elsewhere
the logits are made as usual: the same function, at the usual cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch

from speechmeter.transducer.checks import (
    Sizes,
    check_batch,
    check_blank,
    check_reduction,
    check_scores,
    kind_of_losses,
    reduce,
)
from speechmeter.transducer.differentiable import Options
from speechmeter.transducer.engines import engine_for
from speechmeter.transducer.errors import OptionError, ShapeError
from speechmeter.transducer.exact import rnnt_loss
from speechmeter.transducer.pruned import check_starts, pruned_rnnt_loss, range_width, take_states

PRECISIONS = ("float32", "float16")
MEMORY = ("normal", "low")
ACTIVATIONS: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = MappingProxyType(
    {
        "tanh": torch.tanh,
        "relu": torch.relu,
        "leaky_relu": torch.nn.functional.leaky_relu,
        "gelu": torch.nn.functional.gelu,
        "identity": lambda joined: joined,
    }
)
"""What a joiner may do between the sum and the output layer: a slope of 0.01 in leaky_relu, erf in gelu."""


@torch.compiler.disable  # type: ignore[untyped-decorator]
def joint_rnnt_loss(
    encoder: torch.Tensor,
    predictor: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    targets: torch.Tensor,
    logit_lengths: torch.Tensor,
    target_lengths: torch.Tensor,
    blank: int = -1,
    reduction: str = "mean",
    *,
    activation: str = "tanh",
    precision: str | None = None,
    memory: str = "normal",
    fastemit: float = 0.0,
    delay_penalty: float = 0.0,
    check: bool = True,
) -> torch.Tensor:
    """Return the exact loss of the logits activation(encoder + predictor) · weightᵀ + bias, differentiable in all four.

    `encoder` (B, T, H), `predictor` (B, U + 1, H), `weight` (V, H), `bias` (V) or None; `activation` is "tanh", "relu",
    "leaky_relu", "gelu" or "identity"; the other arguments are those of `rnnt_loss`.

    On a GPU `precision` says how matrices are multiplied: "float32"; or "float16", factors of 11 significant bits,
    scaled by powers of two, with sums in float32, which is as precise as TF32 and faster. None takes "float16" where
    torch may use TF32, under autocast, and for encoders of half precision. `memory="low"` computes smaller pieces
    there: less scratch, more launches.
    """
    check_reduction(reduction)
    sides = encoder, predictor, weight, weight.new_zeros(len(weight)) if bias is None else bias
    _check_names(activation, memory)
    sizes = _sizes(sides, targets, logit_lengths, target_lengths, check, late=engine_for(encoder).name == "triton")
    precision, blank = _precision(precision, encoder), check_blank(blank, len(weight))
    options = Options(fastemit=fastemit, delay_penalty=delay_penalty, kind=kind_of_losses(reduction, encoder))
    if engine_for(encoder).name == "triton":
        how = {"blank": blank, "precision": precision, "activation": activation, "memory": memory}
        return reduce(_fused(sides, targets, sizes, options, **how), reduction, encoder)
    hidden = ACTIVATIONS[activation](encoder.unsqueeze(2) + predictor.unsqueeze(1))
    logits = torch.nn.functional.linear(hidden, weight, bias)
    plain: torch.Tensor = rnnt_loss(
        logits, targets, logit_lengths, target_lengths, blank, reduction=reduction,
        fastemit=fastemit, delay_penalty=delay_penalty, check=False,
    )  # fmt: skip
    return plain


@torch.compiler.disable  # type: ignore[untyped-decorator]
def pruned_joint_rnnt_loss(
    encoder: torch.Tensor,
    predictor: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    targets: torch.Tensor,
    starts: torch.Tensor,
    logit_lengths: torch.Tensor,
    target_lengths: torch.Tensor,
    states: int = 5,
    blank: int = -1,
    reduction: str = "mean",
    *,
    activation: str = "tanh",
    precision: str | None = None,
    memory: str = "normal",
    fastemit: float = 0.0,
    delay_penalty: float = 0.0,
    check: bool = True,
) -> torch.Tensor:
    """Return the pruned loss of the same logits, for `states` states a frame from starts[b, t] on.

    `starts` are what `prune_ranges` returned for the same number of states; see `joint_rnnt_loss`.
    """
    check_reduction(reduction)
    sides = encoder, predictor, weight, weight.new_zeros(len(weight)) if bias is None else bias
    _check_names(activation, memory)
    sizes = _sizes(sides, targets, logit_lengths, target_lengths, check)
    precision, blank = _precision(precision, encoder), check_blank(blank, len(weight))
    width = range_width(states, predictor.shape[1])
    check_starts(starts, sizes, width, check)
    options = Options(fastemit=fastemit, delay_penalty=delay_penalty, kind=kind_of_losses(reduction, encoder))
    if engine_for(encoder).name == "triton":
        inside = starts.to(encoder.device)
        how = {"blank": blank, "precision": precision, "activation": activation, "memory": memory}
        return reduce(_fused(sides, targets, sizes, options, ranges=inside, width=width, **how), reduction, encoder)
    hidden = ACTIVATIONS[activation](encoder.unsqueeze(2) + take_states(predictor, starts, width))
    logits = torch.nn.functional.linear(hidden, weight, bias)
    return pruned_rnnt_loss(
        logits, targets, starts, logit_lengths, target_lengths, blank, reduction=reduction,
        fastemit=fastemit, delay_penalty=delay_penalty, check=False,
    )  # fmt: skip


Sides = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]
"""Encoder, predictor, weight and bias."""


def _fused(sides: Sides, targets: torch.Tensor, sizes: Sizes, options: Options, **how: Any) -> torch.Tensor:
    from speechmeter.transducer.fused.joint import Joint, LossOfSides

    losses: torch.Tensor = LossOfSides.apply(*sides, Joint(targets=targets, sizes=sizes, **how), options)
    sizes.settle()
    return losses


def _check_names(activation: str, memory: str) -> None:
    for name, given, known in (("activation", activation, ACTIVATIONS), ("memory", memory, MEMORY)):
        if given not in known:
            raise OptionError(f"{name} is {given!r}; give one of {', '.join(known)}")


def _sizes(
    sides: Sides,
    targets: torch.Tensor,
    logit_lengths: torch.Tensor,
    target_lengths: torch.Tensor,
    check: bool,
    late: bool = False,
) -> Sizes:
    encoder, predictor, weight, bias = sides
    check_scores("encoder", encoder, ("B", "T", "H"))
    check_scores("predictor", predictor, ("B", "U + 1", "H"))
    check_scores("weight", weight, ("V", "H"))
    check_scores("bias", bias, ("V",))
    batch, frames, size = encoder.shape
    if (predictor.shape[0], predictor.shape[2]) != (batch, size) or weight.shape[1] != size:
        raise ShapeError(
            f"encoder has shape {tuple(encoder.shape)}, predictor {tuple(predictor.shape)} and weight "
            f"{tuple(weight.shape)}; encoder and predictor must have the same first dimension "
            "(batch), and all three the same last one (units)"
        )
    if len(bias) != len(weight):
        raise ShapeError(f"bias has {len(bias)} entries for {len(weight)} ids; give one for each, or None")
    return check_batch(
        targets,
        logit_lengths,
        target_lengths,
        scores=encoder,
        padded_frames=frames,
        padded_labels=predictor.shape[1] - 1,
        vocabulary=len(weight),
        check=check,
        late=late,
    )


def _precision(given: str | None, encoder: torch.Tensor) -> str:
    if given is None:
        kind = encoder.device.type
        rounds = torch.is_autocast_enabled(kind) or (kind == "cuda" and torch.backends.cuda.matmul.allow_tf32)
        return "float16" if rounds or encoder.dtype != torch.float32 else "float32"
    if given not in PRECISIONS:
        raise OptionError(f"precision is {given!r}; give one of {', '.join(PRECISIONS)}, or None")
    return given
