"""Transducer (RNN-T) losses of our own, usable as a library.

Needs torch; on the CPU it is faster with numba. Imports nothing else of Speechmeter.
"""

from speechmeter.transducer.errors import (
    DtypeError,
    LabelError,
    LengthError,
    OptionError,
    RangeError,
    ShapeError,
    TransducerInputError,
)
from speechmeter.transducer.exact import rnnt_loss
from speechmeter.transducer.oracle import oracle_loss
from speechmeter.transducer.pruned import prune_ranges, pruned_rnnt_loss, take_states
from speechmeter.transducer.simple import SimpleLoss, simple_rnnt_loss

__all__ = [
    "DtypeError",
    "LabelError",
    "LengthError",
    "OptionError",
    "RangeError",
    "ShapeError",
    "SimpleLoss",
    "TransducerInputError",
    "oracle_loss",
    "prune_ranges",
    "pruned_rnnt_loss",
    "rnnt_loss",
    "simple_rnnt_loss",
    "take_states",
]
