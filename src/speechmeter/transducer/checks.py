"""What every loss checks before it computes: kinds, shapes, lengths, labels and options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from speechmeter.transducer.errors import DtypeError, LabelError, LengthError, OptionError, ShapeError

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
INTEGERS = (torch.int32, torch.int64)
REDUCTIONS = ("none", "sum", "mean")


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The true sizes of a batch: frames and labels of each utterance, and the padded ones."""

    frames: tuple[int, ...]
    labels: tuple[int, ...]
    padded_frames: int
    padded_labels: int

    @property
    def batch(self) -> int:
        """How many utterances there are."""
        return len(self.frames)


def check_scores(name: str, scores: torch.Tensor, dimensions: tuple[str, ...]) -> None:
    """Refuse anything but a float tensor whose dimensions, named in `dimensions`, are all at least one."""
    if not isinstance(scores, torch.Tensor) or scores.dtype not in FLOATS:
        raise DtypeError(f"{name} is {_kind(scores)}; give a tensor of float16, bfloat16, float32 or float64")
    shape = f"({', '.join(dimensions)})"
    if scores.dim() != len(dimensions):
        raise ShapeError(
            f"{name} has shape {tuple(scores.shape)}; it must have the {len(dimensions)} dimensions {shape}"
        )
    if 0 in scores.shape:
        raise ShapeError(f"{name} has shape {tuple(scores.shape)}; every dimension of {shape} must be at least 1")


def check_batch(
    targets: torch.Tensor,
    logit_lengths: torch.Tensor,
    target_lengths: torch.Tensor,
    *,
    batch: int,
    padded_frames: int,
    padded_labels: int,
) -> Sizes:
    """Check targets and lengths against the sizes of the scores and return the true sizes."""
    _check_integers("targets", targets, 2)
    if tuple(targets.shape) != (batch, padded_labels):
        raise ShapeError(
            f"targets have shape {tuple(targets.shape)}, but the scores are for {batch} utterances of up to "
            f"{padded_labels} labels (U + 1 states); give targets of shape ({batch}, {padded_labels})"
        )
    return check_lengths(
        logit_lengths, target_lengths, batch=batch, padded_frames=padded_frames, padded_labels=padded_labels
    )


def check_lengths(
    logit_lengths: torch.Tensor, target_lengths: torch.Tensor, *, batch: int, padded_frames: int, padded_labels: int
) -> Sizes:
    """Check the lengths against the sizes of the scores and return the true sizes.

    Reads the lengths on the host: with tensors on a GPU this waits for them.
    """
    frames = _lengths("logit_lengths", logit_lengths, batch, least=1, most=padded_frames)
    labels = _lengths("target_lengths", target_lengths, batch, least=0, most=padded_labels)
    return Sizes(frames=frames, labels=labels, padded_frames=padded_frames, padded_labels=padded_labels)


def check_blank(blank: int, vocabulary: int) -> int:
    """Return the id of blank; a negative one counts from the end, as an index does."""
    if isinstance(blank, bool) or not isinstance(blank, int):
        raise LabelError(f"blank is {blank!r}; give the id as an int")
    if not -vocabulary <= blank < vocabulary:
        raise LabelError(
            f"blank is {blank}, but there are {vocabulary} ids; give one from 0 to {vocabulary - 1} "
            f"(or from -{vocabulary} to -1, counted from the end)"
        )
    return blank % vocabulary


def check_reduction(reduction: str) -> None:
    """Refuse a reduction that does not exist."""
    if reduction not in REDUCTIONS:
        raise OptionError(f"reduction is {reduction!r}; give one of {', '.join(REDUCTIONS)}")


def next_labels(targets: torch.Tensor, sizes: Sizes, vocabulary: int, device: torch.device) -> torch.Tensor:
    """Return the label that follows each prefix, int64 of shape (B, U + 1); -1 where the utterance is complete.

    Whatever stands in the padding of the targets is ignored.
    """
    counts = torch.tensor(sizes.labels).unsqueeze(1)
    real = (torch.arange(sizes.padded_labels) < counts).to(device)
    labels = torch.where(real, targets.detach().to(device, torch.int64), -1)
    if sizes.padded_labels:
        wrong = real & ((labels < 0) | (labels >= vocabulary))
        if bool(wrong.any()):
            row, column = (int(i) for i in wrong.nonzero()[0])
            raise LabelError(
                f"targets[{row}, {column}] is {int(labels[row, column])}, but the ids run from 0 to {vocabulary - 1}; "
                "correct the target, or target_lengths if it is padding"
            )
    return torch.nn.functional.pad(labels, (0, 1), value=-1)


def reduce(losses: torch.Tensor, reduction: str, scores: torch.Tensor) -> torch.Tensor:
    """Reduce float64 losses over the batch and return them in the dtype of the scores, at least float32."""
    if reduction == "sum":
        losses = losses.sum()
    elif reduction == "mean":
        losses = losses.mean()
    return losses.to(torch.promote_types(scores.dtype, torch.float32))


def _check_integers(name: str, values: torch.Tensor, dimensions: int) -> None:
    if not isinstance(values, torch.Tensor) or values.dtype not in INTEGERS:
        raise DtypeError(f"{name} is {_kind(values)}; give a tensor of int32 or int64")
    if values.dim() != dimensions:
        raise ShapeError(f"{name} has shape {tuple(values.shape)}; it must have {dimensions} dimension(s)")


def _lengths(name: str, values: torch.Tensor, batch: int, *, least: int, most: int) -> tuple[int, ...]:
    _check_integers(name, values, 1)
    if len(values) != batch:
        raise ShapeError(f"{name} has {len(values)} entries for {batch} utterances; give one for each")
    lengths = tuple(values.tolist())
    for row, length in enumerate(lengths):
        if not least <= length <= most:
            raise LengthError(
                f"{name}[{row}] is {length}, outside {least} to {most}, which the tensors hold; "
                "give the true length, or pad the tensors to it"
            )
    return lengths


def _kind(value: Any) -> str:
    return (
        f"a tensor of {value.dtype}".replace("torch.", "") if isinstance(value, torch.Tensor) else type(value).__name__
    )
