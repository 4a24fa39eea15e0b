"""What the losses refuse, each a `ValueError`.

This package imports nothing else of Speechmeter, so its tree is separate from the one in `core`.

TransducerInputError (ValueError)
├── ShapeError      a tensor with the wrong number or size of dimensions
├── DtypeError      a tensor of a kind that cannot be used
├── LengthError     a length that is negative, zero frames, or beyond its tensor
├── LabelError      a blank or a target outside the vocabulary
├── OptionError     an option that does not exist
└── RangeError      pruning ranges that no alignment fits into

GraphOrderError (RuntimeError) is about calls in the wrong order, not about an input.
"""

from __future__ import annotations


class TransducerInputError(ValueError):
    """Base of every refusal: what is wrong, why it matters where that is not plain, and the way out."""


class ShapeError(TransducerInputError):
    """A tensor with the wrong number or size of dimensions."""


class DtypeError(TransducerInputError):
    """A tensor of a kind that cannot be used."""


class LengthError(TransducerInputError):
    """A length that is negative, zero frames, or beyond its tensor."""


class LabelError(TransducerInputError):
    """A blank or a target outside the vocabulary."""


class OptionError(TransducerInputError):
    """An option that does not exist."""


class RangeError(TransducerInputError):
    """Pruning ranges that no alignment fits into."""


class GraphOrderError(RuntimeError):
    """A backward pass came after the forward pass of another batch, which has overwritten what it needs."""
