"""The loss with its joiner, forward and backward, on a GPU: launches of the joiner's kernels and the lattice's.

No value is read on the host. Imports triton.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch.autograd.function import once_differentiable
from triton.tools.tensor_descriptor import TensorDescriptor

from speechmeter.transducer.checks import Sizes
from speechmeter.transducer.differentiable import Options, delay, losses_of
from speechmeter.transducer.fused import joiner, joiner_back, lattice, tiles
from speechmeter.transducer.fused.factors import KIND, PRECISIONS, Matrix, top_of_sums
from speechmeter.transducer.fused.launching import Launch, blocks_for, next_power_of_2

SCRATCH_BYTES = {"normal": 704 * 2**20, "low": 128 * 2**20}
"""What hidden units and gradients of logits of one chunk may take, by `memory`."""
SPLITS = 16
ALIGNED = 64
JOIN_BLOCK = 128  # of factors in one part
JOIN_WARPS = 4
FOLD_BLOCK = 64
FOLD_TILES = 4
FOLD_WARPS = 2


@dataclass(frozen=True, kw_only=True)
class Joint:
    """A batch for the joiner. `ranges` (B, T) are the first states of each frame's `width` states; None for all."""

    targets: torch.Tensor
    sizes: Sizes
    blank: int
    precision: str
    activation: str = "tanh"
    memory: str = "normal"
    ranges: torch.Tensor | None = None
    width: int = 0

    @property
    def states(self) -> int:
        """How many states a frame computes, padding included."""
        return self.sizes.padded_labels + 1 if self.ranges is None else self.width


class LossOfSides(torch.autograd.Function):  # type: ignore[misc]
    """Losses of encoder (B, T, H), predictor (B, U + 1, H), weight (V, H) and bias (V)."""

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
        step = _Step(encoder, predictor, weight, bias, joint)
        blank, emit, log_sums = step.cells()
        delay(emit, joint.sizes, options)
        if not any(ctx.needs_input_grad):
            return losses_of(lattice.log_likelihood(blank, emit, joint.sizes), options)
        likelihood, blank_use, label_use = lattice.posteriors(blank, emit, joint.sizes)
        if options.fastemit:
            label_use *= 1.0 + options.fastemit
        ctx.save_for_backward(encoder, predictor, weight, bias, blank_use, label_use, log_sums)
        ctx.step, ctx.options = step, options
        return losses_of(likelihood, options)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, weights: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients of both sides, of the weight and of the bias."""
        encoder, predictor, weight, bias, *kept = ctx.saved_tensors
        found = ctx.step.gradients(*kept, weights, ctx.options.fastemit)
        rows, columns = weight.shape
        cut = found[0], found[1], found[2][:rows, :columns], found[3][:rows]
        like = encoder, predictor, weight, bias
        return (*(part.to(given.dtype) for part, given in zip(cut, like, strict=True)), None, None)


class _Step:
    """One batch: its tiles, chunk by chunk. The last chunk's hidden units are kept for the backward pass.

    What the first kernel needs is made first: the GPU computes while the host prepares the second.
    """

    def __init__(
        self,
        encoder: torch.Tensor,
        predictor: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        joint: Joint,
    ) -> None:
        self._encoder, self._predictor = encoder.detach().contiguous(), predictor.detach().contiguous()
        self._weight, self._bias, self._joint = weight, bias, joint
        how = self._how = PRECISIONS[joint.precision]
        self._ids, self._units = how.padded(weight)
        self._tiles = tiles.listed(joint.sizes, joint.states)
        row_bytes = (self._ids + self._units) * how.parts * KIND.itemsize
        self._chunk = max(1, min(self._tiles.most, SCRATCH_BYTES[joint.memory] // (row_bytes * tiles.CELLS)))
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
        self._units_of_cells = {
            "hidden_top": self._tiles.count
            if joint.activation == "tanh"
            else top_of_sums(encoder, predictor, joint.sizes),
            "ACTIVATION": joint.activation,
            "HIDDEN": self._units,
            "TERMS": how.terms,
        }
        self._product = self._units_of_cells | {"BLOCK": how.block, "STEP": how.step}
        self._options = {"num_warps": how.warps, "num_stages": how.stages}
        self._kept: tuple[torch.Tensor, dict[str, Any]] | None = None

    def cells(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the log-probabilities of blank and label, and log Σ exp of each row in two parts, tile by tile."""
        sizes, device = self._joint.sizes, self._encoder.device
        shape = sizes.batch, sizes.padded_frames, sizes.padded_labels + 1
        blank, emit = lattice.empty_cells(*shape, device)
        log_sums = torch.empty((self._tiles.most * tiles.CELLS, 2), device=device)
        self._run(self._forward(blank, emit, log_sums), self._rounds())
        return blank, emit, log_sums

    def gradients(
        self,
        blank_use: torch.Tensor,
        label_use: torch.Tensor,
        log_sums: torch.Tensor,
        weights: torch.Tensor,
        fastemit: float,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the gradients of encoder, predictor, padded weight and padded bias, in float32.

        `weights` are those of the losses, (B,).
        """
        kept, self._kept = self._kept, None
        again = kept is not None
        hidden, shared = kept or (self._hidden(), None)
        rounds = self._rounds()[::-1]
        joined = [] if again and len(rounds) == 1 else [self._join(hidden, again)]
        for join in joined:
            join(rounds[0])
        made = self._zeros()
        saved = {"log_sums": log_sums, "blank_use": blank_use, "label_use": label_use}
        scaled = {
            "weights": weights, "weight_step": weights.stride(0), "batch": len(weights), "emphasis": 1.0 + fastemit,
            "BATCH": max(16, next_power_of_2(len(weights))),
        }  # fmt: skip
        self._run(self._backward(hidden, shared or self._logits(hidden), saved, scaled, *made), rounds, *joined)
        return made

    def _forward(self, blank: torch.Tensor, emit: torch.Tensor, log_sums: torch.Tensor) -> Iterator[Launch]:
        """Yield the kernels from both sides to the cells, in their order."""
        device = blank.device
        hidden = self._hidden()
        yield self._join(hidden, again=False)
        if self._joint.ranges is not None:
            lattice.fill(blank, emit)
        blocks, rows = self._ids // self._how.block, self._held * tiles.CELLS
        tops, sums = torch.empty((2, blocks, rows), device=device)
        blank_scores, label_scores = torch.empty((2, rows), device=device)
        found = {"tops": tops, "sums": sums, "blank_scores": blank_scores, "label_scores": label_scores, "rows": rows}
        shared = self._logits(hidden)
        if self._joint.memory == "normal":
            self._kept = hidden, shared
        yield Launch(joiner.score, (blocks, self._held), self._options, **shared, **found)
        yield Launch(
            joiner.normalise, (self._held,), {"num_warps": 4}, **self._places, **found,
            by_blank=blank, by_label=emit, log_sums=log_sums, blocks=blocks,
        )  # fmt: skip

    def _backward(
        self,
        hidden: torch.Tensor,
        shared: dict[str, Any],
        saved: dict[str, torch.Tensor],
        scaled: dict[str, Any],
        of_encoder: torch.Tensor,
        of_predictor: torch.Tensor,
        of_weight: torch.Tensor,
        of_bias: torch.Tensor,
    ) -> Iterator[Launch]:
        """Yield the kernels from the hidden units to all gradients, in their order."""
        how, ids, units = self._how, self._ids, self._units
        gradient = torch.empty((len(hidden), how.parts * ids), dtype=KIND, device=hidden.device)
        cells = [tiles.CELLS, how.block]
        yield Launch(
            joiner_back.differentiate, (ids // how.block, self._held), self._options, **shared, **saved,
            **scaled, gradient=_blocks(gradient, cells), bias_gradient=of_bias, IDS=ids,
        )  # fmt: skip
        yield Launch(
            joiner_back.gather_weight, (units // how.block, ids // how.block, SPLITS), self._options, **self._found,
            **self._product, gradient=_blocks(gradient, [how.step, how.block]),
            hidden=_blocks(hidden, [how.step, how.block]), **scaled,
            counts=self._joint.sizes.labels_there, weight_gradient=of_weight, width=self._joint.states,
            IDS=ids, SPLITS=SPLITS,
        )  # fmt: skip
        yield Launch(
            joiner_back.pull_back, (units // how.block, self._held), self._options, **self._places, **self._product,
            gradient=_blocks(gradient, [tiles.CELLS, how.step]),
            weight=_blocks(self._matrix.weight, [how.step, how.block]), hidden=_blocks(hidden, cells), IDS=ids,
            encoder=self._encoder, predictor=self._predictor, size=self._encoder.shape[2],
        )  # fmt: skip
        yield Launch(
            joiner_back.fold, (self._held, blocks_for(units, FOLD_BLOCK)), {"num_warps": FOLD_WARPS}, **self._places,
            **scaled, sums=hidden, weight_top=self._matrix.top, TERMS=how.terms,
            encoder_gradient=of_encoder, predictor_gradient=of_predictor,
            size=self._encoder.shape[2], HIDDEN=units, BLOCK=min(units, FOLD_BLOCK), TILES=FOLD_TILES,
        )  # fmt: skip

    @cached_property
    def _matrix(self) -> Matrix:
        return Matrix.of(self._weight, self._bias, self._how)

    @cached_property
    def _targets(self) -> torch.Tensor:
        return self._joint.targets.to(self._encoder.device).contiguous()

    def _rounds(self) -> range:
        """Return where chunks begin, as far as the host knows."""
        return range(0, max(1, self._tiles.end()), self._chunk)

    def _run(self, kernels: Iterator[Launch], rounds: range, *launched: Launch) -> None:
        """Launch all kernels for one chunk after another; those `launched` already did the first."""
        known = list(launched)
        for kernel in kernels:
            kernel(rounds[0])
            known.append(kernel)
            if not self._tiles.arriving and len(rounds) > 1:
                self._tiles.send_count()
        for first in rounds[1:]:
            if first < self._tiles.end():
                for kernel in known:
                    kernel(first)

    def _zeros(self) -> tuple[torch.Tensor, ...]:
        """Return zeros for the four gradients, out of one allocation."""
        shapes = self._encoder.shape, self._predictor.shape, (self._ids, self._units), (self._ids,)
        sizes = [blocks_for(math.prod(shape), ALIGNED) * ALIGNED for shape in shapes]
        parts = torch.zeros(sum(sizes), device=self._encoder.device).split(sizes)
        return tuple(part[: math.prod(shape)].view(shape) for part, shape in zip(parts, shapes, strict=True))

    def _hidden(self) -> torch.Tensor:
        shape = self._held * tiles.CELLS, self._how.parts * self._units
        return torch.empty(shape, dtype=KIND, device=self._encoder.device)

    def _join(self, hidden: torch.Tensor, again: bool) -> Launch:
        parts = self._how.parts  # two need twice the registers
        block = min(self._units, JOIN_BLOCK // parts)
        return Launch(
            joiner.join, (self._held, blocks_for(self._units, block)), {"num_warps": JOIN_WARPS * parts},
            **self._places, **self._units_of_cells, encoder=self._encoder, predictor=self._predictor, hidden=hidden,
            size=self._encoder.shape[2], BLOCK=block, AGAIN=again,
        )  # fmt: skip

    def _logits(self, hidden: torch.Tensor) -> dict[str, Any]:
        """Return what the two kernels share that compute logits."""
        how = self._how
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
            }
        )


def _blocks(matrix: torch.Tensor, block: list[int]) -> TensorDescriptor:
    """Return a matrix for kernels that read and write whole blocks of it."""
    return TensorDescriptor.from_tensor(matrix, block)
