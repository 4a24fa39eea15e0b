"""The loss with its joiner, forward and backward, on a GPU: launches of the joiner's kernels and the lattice's.

No value is read on the host. Imports triton.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import triton
from torch.autograd.function import once_differentiable
from triton.tools.tensor_descriptor import TensorDescriptor

from speechmeter.transducer.checks import Sizes
from speechmeter.transducer.differentiable import Options, delay
from speechmeter.transducer.fused import joiner, lattice, tiles
from speechmeter.transducer.fused.launching import Launch

SCRATCH_BYTES = 704 * 2**20
"""What hidden units and gradients of logits of one chunk may take."""


@dataclass(frozen=True, kw_only=True)
class Multiplying:
    """How matrices are multiplied: the kind of their entries, blocks of ids or units, steps, warps, stages.

    `scaled` entries are multiplied by a power of two before they are rounded, so that a kind with few exponents holds
    them; `input_precision` is Triton's.
    """

    kind: torch.dtype
    block: int
    step: int
    warps: int
    stages: int
    scaled: bool = False
    input_precision: str = "ieee"


PRECISIONS = {
    "float32": Multiplying(kind=torch.float32, block=128, step=32, warps=8, stages=3, input_precision="tf32x3"),
    "float16": Multiplying(kind=torch.float16, block=128, step=64, warps=4, stages=3, scaled=True),
}
SPLITS = 16
JOIN_BLOCK = 128
FOLD_BLOCK = 64
FOLD_WARPS = 2


@dataclass(frozen=True, kw_only=True)
class Joint:
    """A batch for the joiner. `ranges` (B, T) are the first states of each frame's `width` states; None for all."""

    targets: torch.Tensor
    sizes: Sizes
    blank: int
    precision: str
    ranges: torch.Tensor | None = None
    width: int = 0

    @property
    def states(self) -> int:
        """How many states a frame computes, padding included."""
        return self.sizes.padded_labels + 1 if self.ranges is None else self.width


class LossOfSides(torch.autograd.Function):  # type: ignore[misc]
    """Losses in float64 of encoder (B, T, H), predictor (B, U + 1, H), weight (V, H) and bias (V)."""

    @staticmethod
    def forward(
        ctx: Any,
        encoder: torch.Tensor,
        predictor: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        joint: Joint,
        options: Options,
    ) -> torch.Tensor:
        """Return the loss of each utterance."""
        step = _Step(encoder, predictor, _Matrix.of(weight, bias, joint.precision), joint)
        blank, emit, log_sums = step.cells()
        delay(emit, joint.sizes, options)
        if not any(ctx.needs_input_grad):
            return -lattice.log_likelihood(blank, emit, joint.sizes)
        likelihood, blank_use, label_use = lattice.posteriors(blank, emit, joint.sizes)
        if options.fastemit:
            label_use *= 1.0 + options.fastemit
        ctx.save_for_backward(encoder, predictor, weight, bias, blank_use, label_use, log_sums)
        ctx.step, ctx.options = step, options
        return -likelihood

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, weights: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients of both sides, of the weight and of the bias."""
        encoder, predictor, weight, bias, *kept = ctx.saved_tensors
        weights = weights.float()
        top = torch.linalg.vector_norm(weights, torch.inf) * (1.0 + ctx.options.fastemit)
        found = ctx.step.gradients(*kept, weights, top)
        rows, columns = weight.shape
        cut = found[0], found[1], found[2][:rows, :columns], found[3][:rows]
        like = encoder, predictor, weight, bias
        return (*(part.to(given.dtype) for part, given in zip(cut, like, strict=True)), None, None)


@dataclass(frozen=True, kw_only=True)
class _Matrix:
    """Weight and bias, padded, scaled and rounded for the products, and the largest entry of the weight."""

    weight: torch.Tensor
    bias: torch.Tensor
    top: torch.Tensor
    multiplying: Multiplying

    @classmethod
    def of(cls, weight: torch.Tensor, bias: torch.Tensor, precision: str) -> _Matrix:
        how = PRECISIONS[precision]
        weight, bias = weight.detach().contiguous(), bias.detach().contiguous()
        ids, units = (triton.cdiv(length, how.block) * how.block for length in weight.shape)
        held = torch.empty((ids, units), dtype=how.kind, device=weight.device)
        held_bias = torch.empty(ids, dtype=torch.float32, device=weight.device)
        top = torch.linalg.vector_norm(weight, torch.inf)
        count, size = weight.shape
        Launch(
            joiner.hold_weight, (ids,), {"num_warps": 1}, weight=weight, bias=bias, weight_top=top, held=held,
            held_bias=held_bias, count=count, size=size, HIDDEN=units, BLOCK=triton.next_power_of_2(units),
            SCALED=how.scaled,
        )()  # fmt: skip
        return cls(weight=held, bias=held_bias, top=top, multiplying=how)


class _Step:
    """One batch: its tiles, chunk by chunk."""

    def __init__(self, encoder: torch.Tensor, predictor: torch.Tensor, matrix: _Matrix, joint: Joint) -> None:
        self._encoder, self._predictor = encoder.detach().contiguous(), predictor.detach().contiguous()
        self._matrix, self._joint = matrix, joint
        self._targets = joint.targets.to(encoder.device).contiguous()
        self._tiles = tiles.listed(joint.sizes, joint.states)
        row_bytes = sum(matrix.weight.shape) * matrix.weight.element_size()
        self._chunk = max(1, min(self._tiles.most, SCRATCH_BYTES // (row_bytes * tiles.CELLS)))
        self._held = self._chunk + self._tiles.most_of_band - 1  # the last band may go on behind the chunk
        self._found = {"numbers": self._tiles.numbers, "tile_count": self._tiles.count, "chunk": self._chunk}
        sizes = joint.sizes
        self._places = self._found | {
            "frames": sizes.frames_there,
            "counts": sizes.labels_there,
            "ranges": self._tiles.count if joint.ranges is None else joint.ranges.contiguous(),
            "padded_frames": sizes.padded_frames,
            "padded_states": sizes.padded_labels + 1,
            "width": joint.states,
            "RANGES": joint.ranges is not None,
        }
        how = matrix.multiplying
        self._product = {
            "PRECISION": how.input_precision, "BLOCK": how.block, "STEP": how.step, "SCALED": how.scaled
        }  # fmt: skip
        self._options = {"num_warps": how.warps, "num_stages": how.stages}

    def cells(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the log-probabilities of blank and label, and log Σ exp of each row in two parts, tile by tile."""
        sizes, device = self._joint.sizes, self._encoder.device
        shape = sizes.batch, sizes.padded_frames, sizes.padded_labels + 1
        blank, emit = (lattice.empty_cells(*shape, device) for _ in range(2))
        if self._joint.ranges is not None:
            blank.fill_(-torch.inf)
            emit.fill_(-torch.inf)
        log_sums = torch.empty((self._tiles.most * tiles.CELLS, 2), device=device)
        blocks, rows = len(self._matrix.weight) // self._matrix.multiplying.block, self._held * tiles.CELLS
        tops, sums = torch.empty((2, blocks, rows), device=device)
        blank_scores, label_scores = torch.empty((2, rows), device=device)
        found = {"tops": tops, "sums": sums, "blank_scores": blank_scores, "label_scores": label_scores, "rows": rows}
        hidden = self._hidden()
        self._run(
            self._join(hidden),
            Launch(joiner.score, (blocks, self._held), self._options, **self._logits(hidden), **found),
            Launch(
                joiner.normalise, (self._held,), {"num_warps": 4}, **self._places, **found,
                by_blank=blank, by_label=emit, log_sums=log_sums, blocks=blocks,
            ),
        )  # fmt: skip
        return blank, emit, log_sums

    def gradients(
        self,
        blank_use: torch.Tensor,
        label_use: torch.Tensor,
        log_sums: torch.Tensor,
        weights: torch.Tensor,
        top: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the gradients of encoder, predictor, padded weight and padded bias, in float32.

        `weights` are those of the losses, (B,), and `top` is the most that a gradient of a logit can be.
        """
        how = self._matrix.multiplying
        ids, units = self._matrix.weight.shape
        device = self._encoder.device
        of_encoder, of_predictor = (torch.zeros(side.shape, device=device) for side in (self._encoder, self._predictor))
        of_weight, of_bias = torch.zeros((ids, units), device=device), torch.zeros(ids, device=device)
        hidden = self._hidden()
        gradient = torch.empty((len(hidden), ids), dtype=how.kind, device=device)
        id_block = min(128, how.block)
        cells = [tiles.CELLS, how.block]
        self._run(
            self._join(hidden),
            Launch(
                joiner.differentiate, (ids // how.block, self._held), self._options, **self._logits(hidden),
                log_sums=log_sums, blank_use=blank_use, label_use=label_use, weights=weights.contiguous(),
                gradient_top=top, gradient=_blocks(gradient, cells), bias_gradient=of_bias,
            ),
            Launch(
                joiner.gather_weight, (units // how.block, ids // id_block, SPLITS), self._options, **self._found,
                **self._product, gradient=_blocks(gradient, [how.step, id_block]),
                hidden=_blocks(hidden, [how.step, how.block]), gradient_top=top,
                counts=self._joint.sizes.labels_there, weight_gradient=of_weight, width=self._joint.states,
                HIDDEN=units, ID_BLOCK=id_block, SPLITS=SPLITS,
            ),
            Launch(
                joiner.pull_back, (units // how.block, self._held), self._options, **self._found, **self._product,
                gradient=_blocks(gradient, [tiles.CELLS, how.step]),
                weight=_blocks(self._matrix.weight, [how.step, how.block]), hidden=_blocks(hidden, cells), IDS=ids,
            ),
            Launch(
                joiner.fold, (self._held, triton.cdiv(units, FOLD_BLOCK)), {"num_warps": FOLD_WARPS}, **self._places,
                sums=hidden, weight_top=self._matrix.top, gradient_top=top, SCALED=how.scaled,
                encoder_gradient=of_encoder, predictor_gradient=of_predictor,
                size=self._encoder.shape[2], HIDDEN=units, BLOCK=min(units, FOLD_BLOCK),
            ),
        )  # fmt: skip
        return of_encoder, of_predictor, of_weight, of_bias

    def _run(self, *kernels: Launch) -> None:
        """Launch all kernels for one chunk after another."""
        for first in range(0, self._tiles.most, self._chunk):
            for kernel in kernels:
                kernel(first)

    def _hidden(self) -> torch.Tensor:
        weight = self._matrix.weight
        return torch.empty((self._held * tiles.CELLS, weight.shape[1]), dtype=weight.dtype, device=weight.device)

    def _join(self, hidden: torch.Tensor) -> Launch:
        units = hidden.shape[1]
        return Launch(
            joiner.join, (self._held, triton.cdiv(units, JOIN_BLOCK)), {"num_warps": 4}, **self._places,
            encoder=self._encoder, predictor=self._predictor, hidden=hidden, size=self._encoder.shape[2],
            HIDDEN=units, BLOCK=min(units, JOIN_BLOCK),
        )  # fmt: skip

    def _logits(self, hidden: torch.Tensor) -> dict[str, Any]:
        """Return what the two kernels share that compute logits."""
        how = self._matrix.multiplying
        return (
            self._places
            | self._product
            | {
                "hidden": _blocks(hidden, [tiles.CELLS, how.step]),
                "weight": _blocks(self._matrix.weight, [how.block, how.step]),
                "bias": self._matrix.bias,
                "weight_top": self._matrix.top,
                "targets": self._targets,
                "blank": self._joint.blank,
                "HIDDEN": hidden.shape[1],
            }
        )


def _blocks(matrix: torch.Tensor, block: list[int]) -> TensorDescriptor:
    """Return a matrix for kernels that read and write whole blocks of it."""
    return TensorDescriptor.from_tensor(matrix, block)
