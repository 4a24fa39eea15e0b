"""numba's CUDA half names functions that numpy has dropped, and fails to load for it. Imports numpy alone."""

from __future__ import annotations

import numpy as np

_RENAMED = {"row_stack": "vstack", "in1d": "isin", "trapz": "trapezoid"}


def lend_dropped_names() -> None:
    """Give numpy the old names back where it has the functions under new ones."""
    for old, new in _RENAMED.items():
        if not hasattr(np, old) and hasattr(np, new):
            setattr(np, old, getattr(np, new))
