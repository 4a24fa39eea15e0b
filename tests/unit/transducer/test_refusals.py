"""What cannot be meant is refused by every loss, with the way out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from transducer_cases import make_batch

from speechmeter.transducer import (
    DtypeError,
    LabelError,
    LengthError,
    OptionError,
    ShapeError,
    TransducerInputError,
    oracle_loss,
    rnnt_loss,
)


def given(**changes: Callable[[Any], Any]) -> dict[str, Any]:
    batch = make_batch([(5, 3), (4, 1)], 6)
    arguments: dict[str, Any] = {
        "logits": batch.logits,
        "targets": batch.targets,
        "logit_lengths": batch.logit_lengths,
        "target_lengths": batch.target_lengths,
        "blank": 0,
        "reduction": "mean",
    }
    return {name: changes[name](value) if name in changes else value for name, value in arguments.items()}


REFUSED = {
    "logits of three dimensions": (ShapeError, r"4 dimensions \(B, T, U \+ 1, V\)", {"logits": lambda x: x[0]}),
    "no utterance": (ShapeError, "at least 1", {"logits": lambda x: x[:0]}),
    "integer logits": (DtypeError, "a tensor of int64; give a tensor of float16", {"logits": lambda x: x.long()}),
    "complex logits": (DtypeError, "complex128", {"logits": lambda x: x.to(torch.complex128)}),
    "logits as a list": (DtypeError, "logits is list", {"logits": lambda x: x.tolist()}),
    "float targets": (DtypeError, "targets is a tensor of float32", {"targets": lambda x: x.float()}),
    "flat targets": (ShapeError, "2 dimension", {"targets": lambda x: x.flatten()}),
    "a target too many": (ShapeError, r"give targets of shape \(2, 3\)", {"targets": lambda x: x.repeat(1, 2)}),
    "lengths as a list": (DtypeError, "logit_lengths is list", {"logit_lengths": lambda x: x.tolist()}),
    "float lengths": (DtypeError, "give a tensor of int32 or int64", {"target_lengths": lambda x: x.float()}),
    "short integers": (DtypeError, "int16", {"logit_lengths": lambda x: x.short()}),
    "a length too few": (ShapeError, "1 entries for 2 utterances", {"logit_lengths": lambda x: x[:1]}),
    "more frames than there are": (LengthError, r"logit_lengths\[0\] is 6", {"logit_lengths": lambda x: x + 1}),
    "no frames": (
        LengthError,
        r"logit_lengths\[0\] is 0, but the tensors allow 1 to 5",
        {"logit_lengths": lambda x: x * 0},
    ),
    "more labels than there are": (LengthError, r"target_lengths\[0\] is 4", {"target_lengths": lambda x: x + 1}),
    "negative labels": (LengthError, r"target_lengths\[1\] is -1", {"target_lengths": lambda x: x - 2}),
    "blank beyond the ids": (LabelError, "from 0 to 5", {"blank": lambda _: 6}),
    "blank before the ids": (LabelError, "from -6 to -1", {"blank": lambda _: -7}),
    "blank as a float": (LabelError, "as an int", {"blank": lambda _: 0.0}),
    "target beyond the ids": (LabelError, r"targets\[0, 0\] is", {"targets": lambda x: x + 6}),
    "negative target": (LabelError, "correct the target, or target_lengths", {"targets": lambda x: x - 6}),
    "unknown reduction": (OptionError, "one of none, sum, mean", {"reduction": lambda _: "average"}),
}


@pytest.mark.parametrize("loss", [rnnt_loss, oracle_loss])
@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_with_the_way_out(loss: Callable[..., torch.Tensor], name: str) -> None:
    error, message, changes = REFUSED[name]
    with pytest.raises(error, match=message) as refusal:
        loss(**given(**changes))
    assert isinstance(refusal.value, TransducerInputError)
    assert isinstance(refusal.value, ValueError)


@pytest.mark.parametrize("loss", [rnnt_loss, oracle_loss])
def test_the_unchanged_input_is_taken(loss: Callable[..., torch.Tensor]) -> None:
    assert loss(**given()).isfinite()
