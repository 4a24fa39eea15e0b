"""The simple loss: a joiner that only adds, so that the whole lattice costs no more than a matrix product.

With encoder scores a(t, v) and predictor scores d(u, v), P(v | t, u) is the softmax over v of a(t, v) + d(u, v). Its
normaliser, log Σ exp(a + d), is the logarithm of a product of two matrices: no tensor of (T, U + 1, V) is made.
Smoothing mixes the log-probabilities with those of the predictor alone and of the encoder alone, so that neither side
learns to leave the work to the other: (1 - p - e) · joint + p · log softmax(d) + e · log softmax(a + log of the mean
over the true states of the batch of softmax(d)).
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from speechmeter.transducer.checks import (
    check_batch,
    check_blank,
    check_reduction,
    check_scores,
    kind_of_losses,
    next_labels,
    reduce,
)
from speechmeter.transducer.differentiable import LossOfCells, Options
from speechmeter.transducer.engines import engine_for_cells
from speechmeter.transducer.errors import OptionError, ShapeError


class SimpleLoss(NamedTuple):
    """A simple loss and where its alignments go.

    `blank_use` and `label_use` (B, T, U + 1), float64, without gradient: the probabilities that an alignment leaves a
    cell by blank and by its label.
    """

    loss: torch.Tensor
    blank_use: torch.Tensor
    label_use: torch.Tensor


def simple_rnnt_loss(
    encoder: torch.Tensor,
    predictor: torch.Tensor,
    targets: torch.Tensor,
    logit_lengths: torch.Tensor,
    target_lengths: torch.Tensor,
    blank: int = -1,
    predictor_only: float = 0.0,
    encoder_only: float = 0.0,
    reduction: str = "mean",
    *,
    check: bool = True,
) -> SimpleLoss:
    """Return the simple loss of `encoder` (B, T, V) and `predictor` (B, U + 1, V), differentiable in both.

    `predictor_only` and `encoder_only` are the shares of smoothing; the other arguments are those of `rnnt_loss`.
    """
    check_reduction(reduction)
    check_scores("encoder", encoder, ("B", "T", "V"))
    check_scores("predictor", predictor, ("B", "U + 1", "V"))
    _check_pair(encoder, predictor)
    _check_shares(predictor_only, encoder_only)
    _, frames, vocabulary = encoder.shape
    sizes = check_batch(
        targets,
        logit_lengths,
        target_lengths,
        scores=encoder,
        padded_frames=frames,
        padded_labels=predictor.shape[1] - 1,
        vocabulary=vocabulary,
        check=check,
    )
    blank = check_blank(blank, vocabulary)
    if engine_for_cells(encoder).name == "triton" and not encoder_only:
        from speechmeter.transducer.fused import simple

        if vocabulary <= simple.LARGEST_VOCABULARY:
            options = Options(kind=kind_of_losses(reduction, encoder))
            given = simple.Simple(targets=targets, sizes=sizes, blank=blank, alone=predictor_only, options=options)
            losses, *uses = simple.LossOfAdded.apply(encoder, predictor, given)
            return SimpleLoss(reduce(losses, reduction, encoder), *uses)
    labels = next_labels(targets, sizes)
    # Padding is replaced before it is used: a NaN there must reach neither loss nor gradient.
    real_t = _real(sizes.frames_there, frames)
    real_u = _real(sizes.labels_there + 1, labels.shape[1])
    encoder64 = torch.where(real_t.unsqueeze(-1), encoder.double(), 0.0)
    predictor64 = torch.where(real_u.unsqueeze(-1), predictor.double(), 0.0)

    scores = _Mixture(encoder64, predictor64, real_u, predictor_only, encoder_only)
    real = real_t.unsqueeze(2) & real_u.unsqueeze(1)
    by_blank = torch.where(real, scores.of(torch.full_like(labels, blank)), -torch.inf)
    by_label = torch.where(real & (labels >= 0).unsqueeze(1), scores.of(labels.clamp(min=0)), -torch.inf)
    losses, blank_use, label_use = LossOfCells.apply(by_blank, by_label, sizes)
    return SimpleLoss(reduce(losses, reduction, encoder), blank_use, label_use)


class _Mixture:
    """Log-probabilities of chosen labels under the smoothed additive joiner."""

    def __init__(
        self,
        encoder: torch.Tensor,
        predictor: torch.Tensor,
        real_u: torch.Tensor,
        predictor_only: float,
        encoder_only: float,
    ) -> None:
        joint = 1.0 - predictor_only - encoder_only
        alone = predictor.log_softmax(-1)
        self._encoder = encoder * (joint + encoder_only)
        self._predictor = predictor * joint + alone * predictor_only
        self._scale = joint * _log_product(encoder, predictor)
        if encoder_only:
            usual = (alone.exp() * real_u.unsqueeze(-1)).sum((0, 1)) / real_u.sum()
            log_usual = usual.clamp(min=torch.finfo(usual.dtype).tiny).log()
            self._predictor = self._predictor + encoder_only * log_usual
            self._scale = self._scale + encoder_only * (encoder + log_usual).logsumexp(-1, keepdim=True)

    def of(self, labels: torch.Tensor) -> torch.Tensor:
        """Return the log-probability (B, T, U + 1) of labels[b, u] in each frame."""
        batch, frames, _ = self._encoder.shape
        from_encoder = self._encoder.gather(2, labels.unsqueeze(1).expand(batch, frames, -1))
        from_predictor = self._predictor.gather(2, labels.unsqueeze(2)).transpose(1, 2)
        return from_encoder + from_predictor - self._scale


def _log_product(encoder: torch.Tensor, predictor: torch.Tensor) -> torch.Tensor:
    """Return log Σ_v exp(encoder(t, v) + predictor(u, v)), of shape (B, T, U + 1)."""
    top_t, top_u = (scores.detach().amax(-1, keepdim=True) for scores in (encoder, predictor))
    product = (encoder - top_t).exp() @ (predictor - top_u).exp().transpose(1, 2)
    # Two sides whose favourites are 700 apart leave nothing of the sum in float64; it is held at the least number then.
    product = product.clamp(min=torch.finfo(product.dtype).tiny)
    return product.log() + top_t + top_u.transpose(1, 2)


def _real(counts: torch.Tensor, padded: int) -> torch.Tensor:
    return torch.arange(padded, device=counts.device) < counts.unsqueeze(1)


def _check_pair(encoder: torch.Tensor, predictor: torch.Tensor) -> None:
    if encoder.shape[0] != predictor.shape[0] or encoder.shape[2] != predictor.shape[2]:
        raise ShapeError(
            f"encoder has shape {tuple(encoder.shape)} and predictor {tuple(predictor.shape)}; "
            "both must have the same first dimension (batch) and the same last one (vocabulary)"
        )


def _check_shares(predictor_only: float, encoder_only: float) -> None:
    if min(predictor_only, encoder_only) < 0 or predictor_only + encoder_only > 1:
        raise OptionError(
            f"predictor_only is {predictor_only} and encoder_only {encoder_only}; "
            "give shares of at least 0 that add up to at most 1"
        )
