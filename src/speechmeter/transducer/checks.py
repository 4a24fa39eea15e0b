"""What every loss checks before it computes: kinds, shapes, lengths, labels and options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch

from speechmeter.transducer.errors import DtypeError, LabelError, LengthError, OptionError, ShapeError

if TYPE_CHECKING:
    from speechmeter.transducer.fused.faults import Look

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
INTEGERS = (torch.int32, torch.int64)
REDUCTIONS = ("none", "sum", "mean")


def _nothing() -> None:
    """Nothing was put off."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The true sizes of a batch: frames and labels of each utterance, and the padded ones.

    The tensors are on the device of the scores. Their values, `frames` and `labels`, are `seen` already, or read when
    they are first asked for: with tensors on a GPU that waits for it. `settle` raises what is wrong with them, where
    that was put off.
    """

    frames_there: torch.Tensor
    labels_there: torch.Tensor
    padded_frames: int
    padded_labels: int
    seen: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    settle: Callable[[], object] = _nothing

    @property
    def batch(self) -> int:
        """How many utterances there are."""
        return int(self.frames_there.shape[0])

    @cached_property
    def frames(self) -> tuple[int, ...]:
        """The frames of each utterance."""
        return self.seen[0] if self.seen else tuple(self.frames_there.tolist())

    @cached_property
    def labels(self) -> tuple[int, ...]:
        """The labels of each utterance."""
        return self.seen[1] if self.seen else tuple(self.labels_there.tolist())


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
    scores: torch.Tensor,
    padded_frames: int,
    padded_labels: int,
    vocabulary: int,
    check: bool = True,
    late: bool = False,
) -> Sizes:
    """Check targets and lengths against the sizes of the scores and return the true sizes, on the scores' device.

    Their values are checked only with `check`; that waits for a GPU which holds them. `late` puts this off until
    `settle` of the sizes, so that the GPU computes meanwhile: only for kernels that stay inside their memory whatever
    the values are.
    """
    _check_integers("targets", targets, 2)
    batch = len(logit_lengths) if scores.dim() == 2 else len(scores)  # packed scores have no dimension for it
    if tuple(targets.shape) != (batch, padded_labels):
        raise ShapeError(
            f"targets have shape {tuple(targets.shape)}, but the scores are for {batch} utterances of up to "
            f"{padded_labels} labels (U + 1 states); give targets of shape ({batch}, {padded_labels})"
        )
    sizes = _sizes(logit_lengths, target_lengths, batch, padded_frames, padded_labels, scores.device)
    return _checked(targets, sizes, vocabulary, late) if check else sizes


def check_lengths(
    logit_lengths: torch.Tensor, target_lengths: torch.Tensor, *, cells: torch.Tensor, check: bool = True
) -> Sizes:
    """Check the lengths against cells (B, T, U + 1) and return the true sizes; their values only with `check`."""
    batch, frames, states = cells.shape
    sizes = _sizes(logit_lengths, target_lengths, batch, frames, states - 1, cells.device)
    if check:
        _check_lengths(sizes)
    return sizes


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


def next_labels(targets: torch.Tensor, sizes: Sizes) -> torch.Tensor:
    """Return the label that follows each prefix, int64 of shape (B, U + 1); -1 where the utterance is complete.

    The values in the padding of the targets are ignored.
    """
    device = sizes.labels_there.device
    real = torch.arange(sizes.padded_labels, device=device) < sizes.labels_there.unsqueeze(1)
    labels = torch.where(real, targets.detach().to(device, torch.int64), -1)
    return torch.nn.functional.pad(labels, (0, 1), value=-1)


def kind_of_losses(reduction: str, scores: torch.Tensor) -> torch.dtype:
    """Return the dtype that losses have before `reduce`: float64 where they will be added up."""
    return torch.promote_types(scores.dtype, torch.float32) if reduction == "none" else torch.float64


def reduce(losses: torch.Tensor, reduction: str, scores: torch.Tensor) -> torch.Tensor:
    """Reduce the losses over the batch and return them in the dtype of the scores, at least float32."""
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


def _sizes(
    logit_lengths: torch.Tensor,
    target_lengths: torch.Tensor,
    batch: int,
    padded_frames: int,
    padded_labels: int,
    device: torch.device,
) -> Sizes:
    for name, values in (("logit_lengths", logit_lengths), ("target_lengths", target_lengths)):
        _check_integers(name, values, 1)
        if len(values) != batch:
            raise ShapeError(f"{name} has {len(values)} entries for {batch} utterances; give one for each")
    return Sizes(
        frames_there=logit_lengths.detach().to(device).contiguous(),
        labels_there=target_lengths.detach().to(device).contiguous(),
        padded_frames=padded_frames,
        padded_labels=padded_labels,
    )


def _checked(targets: torch.Tensor, sizes: Sizes, vocabulary: int, late: bool) -> Sizes:
    """Return the sizes with their values, after one look at a GPU; what that finds wrong, the host says in words."""
    look = _look(targets, sizes, vocabulary)
    if look is None:
        _check_values(targets, sizes, vocabulary)
        return sizes

    def settle() -> Sizes:
        frames, labels, good = look.read()
        found = replace(sizes, seen=(frames, labels))
        if not good:
            _check_values(targets, found, vocabulary)
        return found

    return replace(sizes, settle=settle) if late else settle()


def _look(targets: torch.Tensor, sizes: Sizes, vocabulary: int) -> Look | None:
    if sizes.frames_there.device.type != "cuda":
        return None
    try:
        from speechmeter.transducer.fused.faults import Look
    except ImportError:
        return None
    return Look(targets, sizes, vocabulary)


def _check_values(targets: torch.Tensor, sizes: Sizes, vocabulary: int) -> None:
    _check_lengths(sizes)
    _check_targets(targets, sizes, vocabulary)


def _check_lengths(sizes: Sizes) -> None:
    for name, lengths, least, most in (
        ("logit_lengths", sizes.frames, 1, sizes.padded_frames),
        ("target_lengths", sizes.labels, 0, sizes.padded_labels),
    ):
        for row, length in enumerate(lengths):
            if not least <= length <= most:
                raise LengthError(
                    f"{name}[{row}] is {length}, but the tensors allow {least} to {most}; "
                    "correct the length, or pad the tensors to it"
                )


def _check_targets(targets: torch.Tensor, sizes: Sizes, vocabulary: int) -> None:
    labels = targets.to(sizes.labels_there.device)
    real = torch.arange(sizes.padded_labels, device=labels.device) < sizes.labels_there.unsqueeze(1)
    wrong = real & ((labels < 0) | (labels >= vocabulary))
    if bool(wrong.any()):
        row, column = (int(i) for i in wrong.nonzero()[0])
        raise LabelError(
            f"targets[{row}, {column}] is {int(labels[row, column])}, but the ids run from 0 to {vocabulary - 1}; "
            "correct the target, or target_lengths if it is padding"
        )


def _kind(value: Any) -> str:
    return (
        f"a tensor of {value.dtype}".replace("torch.", "") if isinstance(value, torch.Tensor) else type(value).__name__
    )
