"""Letting go of what a measurement in this process held, so that the next one finds the device as it was."""

from __future__ import annotations

import contextlib
import gc
import sys


def release() -> None:
    """Free what only cycles keep alive, and give cached CUDA memory back to the device. Imports nothing by itself.

    A device that a case broke gives nothing back; what that case was is told by its own outcome.
    """
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        with contextlib.suppress(RuntimeError):
            torch.cuda.empty_cache()
