"""What every torch subject needs: settings before the first operator, device sync, moving input. Imports torch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from speechmeter.core.axes import NONE
from speechmeter.core.device import Device
from speechmeter.core.types import Case


def configure(case: Case) -> torch.dtype:
    """Set threads, seed, TF32 and determinism as the case asks; the dtype of weights and floating input."""
    axes = case.axes
    torch.set_num_threads(axes.threads)
    torch.manual_seed(case.protocol.seed)
    tf32 = axes.tf32
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    deterministic = axes.deterministic
    # Setting it imports the whole compiler, 2 to 3 s and 100 MiB (torch 2.13); so only where it changes something.
    if deterministic != torch.are_deterministic_algorithms_enabled():
        torch.use_deterministic_algorithms(deterministic)
    # The launcher hands a limit over by the environment, because only torch can enforce it on itself.
    limit_gib, device = os.environ.get("SPEECHMETER_CUDA_GIB"), case.device
    if limit_gib and device.is_cuda:
        total = torch.cuda.get_device_properties(str(device)).total_memory
        share = min(1.0, float(limit_gib) * 2**30 / total)
        torch.cuda.set_per_process_memory_fraction(share, device.index or 0)
    dtype = getattr(torch, axes.dtype)
    assert isinstance(dtype, torch.dtype)
    return dtype


@contextmanager
def tf32_kept() -> Iterator[None]:
    """Imports inside leave TF32 as the case set it.

    Importing SpeechBrain 1.1 turns it on: a float32 step with its loss then took 28.8 ms instead of 70 on an H200.
    """
    products, convolutions = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = products, convolutions


def sync_for(device: str) -> Callable[[], None]:
    """A call that waits for a device; on the CPU it does nothing."""
    if not Device.read(device).is_cuda:
        return lambda: None
    return lambda: torch.cuda.synchronize(device)


def compiled(model: Any, case: Case) -> Any:
    """The model, under torch.compile when the case asks for it."""
    return torch.compile(model) if case.axes.compile else model


def inference(call: Callable[..., Any]) -> Callable[..., Any]:
    """The call without autograd."""

    def without_grad(*args: Any, **kwargs: Any) -> Any:
        with torch.inference_mode():
            return call(*args, **kwargs)

    return without_grad


def quantized(model: Any, case: Case, kinds: Sequence[type] = (torch.nn.Linear,)) -> Any:
    """The model with layers of these kinds in int8 if the case asks for it; activations are quantised at each call."""
    if case.axes.get("quantize", NONE) == NONE:
        return model
    from torch.ao.quantization import quantize_dynamic

    return quantize_dynamic(model, set(kinds), dtype=torch.qint8)
