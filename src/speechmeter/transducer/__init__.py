"""Transducer (RNN-T) losses of our own, usable as a library.

Needs torch; it is faster with triton on a GPU, and with numba on the CPU. Imports nothing else of Speechmeter.
"""

from speechmeter.transducer.durations import multi_blank_loss, tdt_loss
from speechmeter.transducer.errors import (
    DtypeError,
    GraphOrderError,
    LabelError,
    LengthError,
    OptionError,
    RangeError,
    ShapeError,
    TransducerInputError,
)
from speechmeter.transducer.exact import packed_rnnt_loss, rnnt_loss
from speechmeter.transducer.graphs import graphed
from speechmeter.transducer.joint import joint_rnnt_loss, pruned_joint_rnnt_loss
from speechmeter.transducer.oracle import oracle_loss
from speechmeter.transducer.oracle_arcs import multi_blank_oracle, tdt_oracle
from speechmeter.transducer.pruned import prune_ranges, pruned_rnnt_loss, take_states
from speechmeter.transducer.simple import SimpleLoss, simple_rnnt_loss

__all__ = [
    "DtypeError",
    "GraphOrderError",
    "LabelError",
    "LengthError",
    "OptionError",
    "RangeError",
    "ShapeError",
    "SimpleLoss",
    "TransducerInputError",
    "graphed",
    "joint_rnnt_loss",
    "multi_blank_loss",
    "multi_blank_oracle",
    "oracle_loss",
    "packed_rnnt_loss",
    "prune_ranges",
    "pruned_joint_rnnt_loss",
    "pruned_rnnt_loss",
    "rnnt_loss",
    "simple_rnnt_loss",
    "take_states",
    "tdt_loss",
    "tdt_oracle",
]
