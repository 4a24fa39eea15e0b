"""The factors of the joiner's products: numbers of float16 that hold float32. Imports triton.

Factors are numbers of float16, scaled by powers of two. With one TERM a factor is rounded to its 11 bits. With three it
is held in two parts, high and low, which stand side by side in a matrix of twice the columns, and a product is
high · high + high · low + low · high: 22 bits, as the three products of TF32 that Triton makes of float32. Tensor cores
cut off what they add up: over 4,096 ids that took 2.5e-5 of a gradient, so that blocks are added up outside of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from speechmeter.transducer.checks import Sizes
from speechmeter.transducer.fused.launching import Launch, blocks_for, next_power_of_2

OF_TANH = tl.constexpr(8192.0)  # the power of two of hidden units that are at most 1


@triton.jit
def _power_of(value):
    """The power of two that brings a number of float32 to between 2¹³ and 2¹⁴, where float16 has room."""
    exponent = (value.to(tl.int32, bitcast=True) >> 23) - 127
    exponent = tl.minimum(tl.maximum(13 - exponent, -60), 60)
    return ((exponent + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def power(largest):
    """The same for a number that a kernel before this one found."""
    return _power_of(tl.load(largest).to(tl.float32))


@triton.jit
def power_of_gradient(weights, weight_step, batch, emphasis, BATCH: tl.constexpr):
    """The same for the gradient of the logits: none is above the largest weight of a loss, times 1 + fastemit."""
    b = tl.arange(0, BATCH)
    of_losses = tl.load(weights + b * weight_step, mask=b < batch, other=0.0).to(tl.float32)
    return _power_of(tl.max(tl.abs(of_losses), 0) * emphasis)


@triton.jit
def power_of_hidden(hidden_top, ACTIVATION: tl.constexpr):
    """The same for hidden units; those of tanh are at most 1."""
    found = OF_TANH
    if ACTIVATION != "tanh":
        found = power(hidden_top)
    return found


@triton.jit
def parts_of(value, kind: tl.constexpr):
    """A number in two of fewer bits, high and low."""
    high = value.to(kind)
    return high, (value - high.to(tl.float32)).to(kind)


@triton.jit
def store(matrix, row, column, value, WIDTH: tl.constexpr, TERMS: tl.constexpr):
    """Write a block of a matrix of WIDTH columns, in one part or two."""
    high, low = parts_of(value, matrix.dtype)
    matrix.store([row, column], high)
    if TERMS == 3:
        matrix.store([row, WIDTH + column], low)


@triton.jit
def add_product(total, left, right, TERMS: tl.constexpr):
    """total + left · right; with three terms rounded as float32 is, not by the tensor cores."""
    if TERMS == 3:
        total += tl.dot(left, right, max_num_imprecise_acc=1)  # other than 0: the sum stays outside of the product
    else:
        total = tl.dot(left, right, total)
    return total


@triton.jit(do_not_specialize=["count"])
def hold_weight(
    weight, bias, weight_top, held, held_bias, count, size, HIDDEN: tl.constexpr, BLOCK: tl.constexpr,
    TERMS: tl.constexpr,
):  # fmt: skip
    """Program (id): its row of the weight, padded, scaled and rounded, and its bias; -1e30 for an id of the padding."""
    v = tl.program_id(0)
    h = tl.arange(0, BLOCK)
    row = tl.load(weight + v.to(tl.int64) * size + h, mask=(h < size) & (v < count), other=0.0).to(tl.float32)
    high, low = parts_of(row * power(weight_top), held.dtype.element_ty)
    at = held + v.to(tl.int64) * (TERMS // 2 + 1) * HIDDEN + h
    tl.store(at, high, mask=h < HIDDEN)
    if TERMS == 3:
        tl.store(at + HIDDEN, low, mask=h < HIDDEN)
    tl.store(held_bias + v, tl.load(bias + v, mask=v < count, other=-1e30).to(tl.float32))


@dataclass(frozen=True, kw_only=True)
class Multiplying:
    """How matrices of float16 are multiplied: terms of a product, blocks of ids or units, steps, warps, stages.

    A product of three terms has factors in two parts.
    """

    terms: int
    block: int = 128
    step: int = 64
    warps: int = 4
    stages: int = 3

    @property
    def parts(self) -> int:
        """Numbers in which a factor is held."""
        return 2 if self.terms > 1 else 1

    def padded(self, weight: torch.Tensor) -> tuple[int, int]:
        """Return ids and units of a weight, filled up to whole blocks."""
        ids, units = (blocks_for(length, self.block) * self.block for length in weight.shape)
        return ids, units


PRECISIONS = {"float32": Multiplying(terms=3, warps=8, stages=4), "float16": Multiplying(terms=1)}
KIND = torch.float16


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """Weight and bias, padded, scaled and rounded for the products, and the largest entry of the weight."""

    weight: torch.Tensor
    bias: torch.Tensor
    top: torch.Tensor

    @classmethod
    def of(cls, weight: torch.Tensor, bias: torch.Tensor, how: Multiplying) -> Matrix:
        """Return what the products need of a weight and its bias."""
        weight, bias = weight.detach().contiguous(), bias.detach().contiguous()
        ids, units = how.padded(weight)
        held = torch.empty((ids, how.parts * units), dtype=KIND, device=weight.device)
        held_bias = torch.empty(ids, dtype=torch.float32, device=weight.device)
        top = torch.linalg.vector_norm(weight, torch.inf)
        count, size = weight.shape
        Launch(
            hold_weight, (ids,), {"num_warps": 1}, weight=weight, bias=bias, weight_top=top, held=held,
            held_bias=held_bias, count=count, size=size, HIDDEN=units, BLOCK=next_power_of_2(units),
            TERMS=how.terms,
        )()  # fmt: skip
        return cls(weight=held, bias=held_bias, top=top)


def top_of_sums(encoder: torch.Tensor, predictor: torch.Tensor, sizes: Sizes) -> torch.Tensor:
    """Return what no sum of both sides exceeds, without the padding of either."""
    tops = []
    for side, lengths in ((encoder, sizes.frames_there), (predictor, sizes.labels_there + 1)):
        real = torch.arange(side.shape[1], device=side.device) < lengths.unsqueeze(1)
        tops.append(torch.where(real, side.detach().float().abs().amax(2), 0.0).amax())
    return tops[0] + tops[1]
