"""The losses of other packages, each as `known.py` declares it. A package is imported when its loss is loaded.

Every loss was run on an H200 (examples/runs/h200-losses): exact ones agreed with the float64 oracle, pruned ones
deviate by design.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import torch

from speechmeter.subjects.losses.call import BLANK, Exact, Labels, Pruned
from speechmeter.subjects.losses.known import DURATIONS
from speechmeter.subjects.losses.ours import PREDICTOR_ONLY
from speechmeter.subjects.torch_runtime import tf32_kept
from speechmeter.subjects.torchaudio_stand_in import torchaudio_or_stand_in

_DROPPED_BY_NUMPY = {"row_stack": "vstack", "in1d": "isin", "trapz": "trapezoid"}


def torchaudio() -> Exact:
    """`torchaudio.functional.rnnt_loss` with its own log-softmax."""
    return _padded(partial(import_module("torchaudio.functional").rnnt_loss, blank=BLANK, reduction="none"))


def warp_transducer() -> Exact:
    """`warprnnt_pytorch.rnnt_loss`, which makes log-probs itself where it needs them."""
    return _padded(partial(import_module("warprnnt_pytorch").rnnt_loss, blank=BLANK, reduction="none"))


def warprnnt_numba() -> Exact:
    """`warprnnt_numba.RNNTLossNumba`; it takes logits on the CPU too."""
    return _numba_loss("warprnnt_numba")


def nemo() -> Exact:
    """NeMo's `RNNTLossNumba`: the kernels that warprnnt_numba was taken from."""
    return _numba_loss("nemo.collections.asr.parts.numba.rnnt_loss")


def nemo_triton() -> Exact:
    """NeMo's Triton loss of raw logits."""
    module = import_module("nemo.collections.asr.parts.rnnt_triton.rnnt_loss_triton")
    return _padded(partial(module.rnnt_loss_triton, BLANK))


def nemo_tdt() -> Exact:
    """NeMo's `TDTLossNumba`, which splits the logits itself."""
    restore_numpy_names()
    kind = import_module("nemo.collections.asr.parts.numba.rnnt_loss").TDTLossNumba
    options = {"fastemit_lambda": 0.0, "clamp": -1, "sigma": 0.0, "omega": 0.0}
    return _padded(kind(blank=BLANK, durations=list(DURATIONS), reduction="none", **options))


def returnn() -> Exact:
    """RETURNN's loss of packed logits."""
    rnnt_loss = import_module("returnn.torch.util.rnnt").rnnt_loss

    def loss(logits: torch.Tensor, labels: Labels) -> torch.Tensor:
        most = max(frames for frames, _ in labels.sizes)
        return rnnt_loss(logits.contiguous(), *labels.arguments, blank=BLANK, max_frames=most)

    return loss


def torch_ctc() -> Exact:
    """`torch.nn.functional.ctc_loss` of logits over frames, with the log-softmax that it needs."""

    def loss(logits: torch.Tensor, labels: Labels) -> torch.Tensor:
        scores = logits.log_softmax(-1).transpose(0, 1)
        return torch.nn.functional.ctc_loss(scores, *labels.arguments, blank=BLANK, reduction="none")

    return loss


def _numba_loss(module: str) -> Exact:
    """Without fastemit, which would scale the loss, and without clamping."""
    restore_numpy_names()
    return _padded(import_module(module).RNNTLossNumba(blank=BLANK, reduction="none", fastemit_lambda=0.0, clamp=-1))


def _padded(rnnt_loss: Callable[..., Any]) -> Exact:
    """Of a function that is called with contiguous padded logits, targets and lengths."""

    def loss(logits: torch.Tensor, labels: Labels) -> torch.Tensor:
        return rnnt_loss(logits.contiguous(), *labels.arguments)

    return loss


def speechbrain() -> Exact:
    """SpeechBrain's `TransducerLoss` by utterance, without its division by the number of frames."""
    restore_numpy_names()
    with tf32_kept(), torchaudio_or_stand_in():
        home = "speechbrain.integrations.numba.transducer_loss"
        try:
            module = import_module(home)
        except ModuleNotFoundError as error:
            if error.name is None or not home.startswith(error.name):  # something else is missing
                raise
            module = import_module("speechbrain.nnet.loss.transducer_loss")  # before 1.1
        compute = module.TransducerLoss(blank=BLANK, reduction="none")

    def loss(logits: torch.Tensor, labels: Labels) -> torch.Tensor:
        return undivided(compute(logits, *labels.arguments), labels.frames)

    return loss


def undivided(by_frame: torch.Tensor, frames: torch.Tensor) -> torch.Tensor:
    """The loss times its frames. SpeechBrain never divides the gradient, so the factor must not reach that."""
    return by_frame + by_frame.detach() * (frames - 1)


def restore_numpy_names() -> None:
    """Give numpy its old names back: numba's CUDA part uses functions that numpy 2 dropped, and fails to load."""
    for old, new in _DROPPED_BY_NUMPY.items():
        if not hasattr(np, old) and hasattr(np, new):
            setattr(np, old, getattr(np, new))


def optimized_transducer() -> Exact:
    """`optimized_transducer.transducer_loss` on the packed logits, which it overwrites; the sum over the batch."""
    transducer_loss = import_module("optimized_transducer").transducer_loss

    def loss(logits: torch.Tensor, labels: Labels) -> torch.Tensor:
        return transducer_loss(
            logits=logits.contiguous(),
            targets=labels.targets,
            logit_lengths=labels.frames,
            target_lengths=labels.labels,
            blank=BLANK,
            from_log_softmax=False,
            reduction="sum",
        )

    return loss


def warp_rnnt() -> Exact:
    """`warp_rnnt.rnnt_loss`; the log-softmax that it needs is part of the loss here."""
    rnnt_loss = import_module("warp_rnnt").rnnt_loss

    def loss(logits: torch.Tensor, labels: Labels) -> torch.Tensor:
        # gather: the fast way, 6.2 ms instead of 8.6 for 30 utterances on an H200
        return rnnt_loss(logits.log_softmax(-1), *labels.arguments, blank=BLANK, reduction="none", gather=True)

    return loss


def k2() -> Exact:
    """`k2.rnnt_loss`."""
    return _k2_exact("k2")


def fast_rnnt() -> Exact:
    """`fast_rnnt.rnnt_loss`; the package shares its interface with k2."""
    return _k2_exact("fast_rnnt")


def k2_pruned() -> Pruned:
    """From `k2.rnnt_loss_smoothed` to `k2.rnnt_loss_pruned`."""
    return _k2_pruned("k2")


def fast_rnnt_pruned() -> Pruned:
    """From `fast_rnnt.rnnt_loss_smoothed` to `fast_rnnt.rnnt_loss_pruned`."""
    return _k2_pruned("fast_rnnt")


def _k2_exact(package: str) -> Exact:
    rnnt_loss = import_module(package).rnnt_loss

    def loss(logits: torch.Tensor, labels: Labels) -> torch.Tensor:
        return rnnt_loss(
            logits=logits,
            symbols=labels.targets,
            termination_symbol=BLANK,
            boundary=_boundary(labels),
            reduction="none",
        )

    return loss


def _k2_pruned(package: str) -> Pruned:
    library = import_module(package)

    def ranges(encoder: torch.Tensor, predictor: torch.Tensor, labels: Labels, states: int) -> tuple[Any, Any]:
        simple, (px_grad, py_grad) = library.rnnt_loss_smoothed(
            lm=predictor,
            am=encoder,
            symbols=labels.targets,
            termination_symbol=BLANK,
            lm_only_scale=PREDICTOR_ONLY,
            am_only_scale=0.0,
            boundary=_boundary(labels),
            reduction="none",
            return_grad=True,
        )
        found = library.get_rnnt_prune_ranges(
            px_grad=px_grad, py_grad=py_grad, boundary=_boundary(labels), s_range=states
        )
        return found, simple

    def join(encoder: torch.Tensor, predictor: torch.Tensor, ranges: Any, states: int) -> torch.Tensor:
        from_encoder, from_predictor = library.do_rnnt_pruning(am=encoder, lm=predictor, ranges=ranges)
        return from_encoder + from_predictor

    def loss(logits: torch.Tensor, labels: Labels, ranges: Any) -> torch.Tensor:
        return library.rnnt_loss_pruned(
            logits=logits,
            symbols=labels.targets,
            ranges=ranges,
            termination_symbol=BLANK,
            boundary=_boundary(labels),
            reduction="none",
        )

    return Pruned(ranges=ranges, join=join, loss=loss)


def _boundary(labels: Labels) -> torch.Tensor:
    """[0, 0, labels, frames] of each utterance; without it both libraries take padding for speech."""
    first = torch.zeros_like(labels.labels)
    return torch.stack([first, first, labels.labels, labels.frames], dim=1)
