"""The Conformer transducer as a task: random features, encoder and stateless decoder, our losses. Imports torch."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from speechmeter.core.axes import NONE
from speechmeter.core.errors import SubjectError
from speechmeter.core.types import Batch
from speechmeter.subjects.losses.call import BLANK, Labels
from speechmeter.subjects.losses.step import sizes_of
from speechmeter.subjects.train.conformer import (
    BANDS,
    Encoder,
    ScaledConv1d,
    ScaledEmbedding,
    ScaledLinear,
    Size,
    subsampled,
)
from speechmeter.transducer import prune_ranges, pruned_rnnt_loss, rnnt_loss, simple_rnnt_loss, take_states
from speechmeter.transducer.simple import SimpleLoss

PRUNED, FULL = "pruned", "full"
_CONTEXT = 2
_SIMPLE_WEIGHT, _PREDICTOR_ONLY = 0.5, 0.25
"""Of the original: how much of the simple loss is added, and its smoothing by the predictor alone."""


class Utterances(NamedTuple):
    """Features (items, frames, 80) with their true lengths, and labels whose frames are those of the encoder."""

    features: torch.Tensor
    lengths: torch.Tensor
    labels: Labels


class Encoded(NamedTuple):
    """Both sides of the lattice, (items, T, width) and (items, U + 1, width)."""

    encoder: torch.Tensor
    predictor: torch.Tensor
    labels: Labels


class Decoder(nn.Module):  # type: ignore[misc]
    """A table of vectors, and a convolution over the last two labels: no memory beyond those."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.embedding = ScaledEmbedding(size.vocabulary, size.width)
        self.conv = ScaledConv1d(size.width, size.width, _CONTEXT, groups=size.width, bias=False)

    def forward(self, targets: torch.Tensor) -> torch.Tensor:
        """(items, U) → (items, U + 1, width): after no label, after the first, …"""
        ids = functional.pad(targets, (_CONTEXT, 0), value=BLANK)
        return functional.relu(self.conv(self.embedding(ids).transpose(1, 2)).transpose(1, 2))


class Joiner(nn.Module):  # type: ignore[misc]
    """Projections of both sides, and the output layer over their sum."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.encoder_proj = ScaledLinear(size.width, size.width)
        self.decoder_proj = ScaledLinear(size.width, size.width)
        self.output = ScaledLinear(size.width, size.vocabulary)

    def forward(self, joined: torch.Tensor) -> torch.Tensor:
        """(…, width) → logits (…, vocabulary)."""
        return self.output(torch.tanh(joined))


class LossSimple(nn.Module):  # type: ignore[misc]
    """Both sides projected to the vocabulary, and the loss of their sum without a joiner."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.am_proj = ScaledLinear(size.width, size.vocabulary)
        self.lm_proj = ScaledLinear(size.width, size.vocabulary)

    def forward(self, sides: Encoded) -> SimpleLoss:
        """The loss, and where its alignments go."""
        encoder, predictor, labels = self.am_proj(sides.encoder), self.lm_proj(sides.predictor), sides.labels
        with torch.autocast(encoder.device.type, enabled=False):
            return simple_rnnt_loss(
                encoder.float(),
                predictor.float(),
                *labels.arguments,
                blank=BLANK,
                predictor_only=_PREDICTOR_ONLY,
                reduction="sum",
            )


class LossPruned(nn.Module):  # type: ignore[misc]
    """Ranges from the simple loss, the joiner in range, and the loss over it. The joiner is a root of its own."""

    def __init__(self, states: int) -> None:
        super().__init__()
        self.states = states

    def forward(self, sides: Encoded, simple: SimpleLoss, joiner: Joiner) -> torch.Tensor:
        """One number."""
        labels = sides.labels
        starts = prune_ranges(simple, labels.frames, labels.labels, states=self.states)
        predictor = take_states(joiner.decoder_proj(sides.predictor), starts, states=self.states)
        logits = joiner(joiner.encoder_proj(sides.encoder).unsqueeze(2) + predictor)
        with torch.autocast(logits.device.type, enabled=False):
            return pruned_rnnt_loss(
                logits.float(), labels.targets, starts, labels.frames, labels.labels, blank=BLANK, reduction="sum"
            )


class LossFull(nn.Module):  # type: ignore[misc]
    """The joiner on every cell, and the exact loss."""

    def forward(self, sides: Encoded, joiner: Joiner) -> torch.Tensor:
        """One number."""
        labels = sides.labels
        encoder, predictor = joiner.encoder_proj(sides.encoder), joiner.decoder_proj(sides.predictor)
        logits = joiner(encoder.unsqueeze(2) + predictor.unsqueeze(1))
        with torch.autocast(logits.device.type, enabled=False):
            return rnnt_loss(logits.float(), *labels.arguments, blank=BLANK, reduction="sum")


class ConformerTransducer:
    """The task. `modules` are its roots, the losses among them, so that each has a row."""

    def __init__(self, size: Size, *, loss: str = PRUNED, states: int = 5, checkpointing: str = NONE) -> None:
        self.size = size
        self.encoder, self.decoder = Encoder(size, checkpointing), Decoder(size)
        self.joiner = Joiner(size)
        self.modules: dict[str, nn.Module] = {
            "encoder": self.encoder,
            "decoder": self.decoder,
            "joiner": self.joiner,
            **({"loss_simple": LossSimple(size), "loss_pruned": LossPruned(states)} if loss == PRUNED else {}),
            **({"loss_full": LossFull()} if loss == FULL else {}),
        }

    def data(self, batch: Batch) -> Utterances:
        """Features of the batch's shapes, the same ones at every call."""
        weight: Any = self.joiner.output.weight
        draw = torch.Generator(device=weight.device).manual_seed(0)
        raw = sizes_of(batch)
        if subsampled(shortest := min(frames for frames, _ in raw)) < 1:
            raise SubjectError(
                f"an utterance of {shortest} frames is too short: no frame is left after subsampling",
                fix="use longer utterances",
            )
        labels = Labels.drawn([(subsampled(t), u) for t, u in raw], self.size.vocabulary, "int64", draw)
        lengths = torch.tensor([frames for frames, _ in raw], device=weight.device)
        shape = (len(raw), max(frames for frames, _ in raw), BANDS)
        features = torch.randn(shape, generator=draw, device=weight.device, dtype=weight.dtype)
        return Utterances(features, lengths, labels)

    def forward(self, inputs: Utterances) -> Encoded:
        """Both sides of the lattice."""
        encoder, _ = self.encoder(inputs.features, inputs.lengths)
        return Encoded(encoder, self.decoder(inputs.labels.targets), inputs.labels)

    def loss(self, outputs: Encoded) -> torch.Tensor:
        """Half the simple loss and the pruned one; or the exact loss."""
        if "loss_full" in self.modules:
            return self.modules["loss_full"](outputs, self.joiner)
        simple = self.modules["loss_simple"](outputs)
        return _SIMPLE_WEIGHT * simple.loss + self.modules["loss_pruned"](outputs, simple, self.joiner)
