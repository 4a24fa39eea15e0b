"""The examples of docs/reference/transducer.md run as they stand, and its table names every public function."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch

from speechmeter import transducer

PAGE = (Path(__file__).parents[2] / "docs/reference/transducer.md").read_text()


def test_examples_run_in_order_and_give_gradients() -> None:
    names: dict[str, Any] = {}
    examples = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(examples) == 5
    for example in examples:
        exec(example, names)
        assert names["loss"].isfinite()
    assert all(names[side].grad.isfinite().all() for side in ("encoder", "predictor"))
    assert isinstance(names["simple"].loss, torch.Tensor)


def test_every_public_name_is_on_the_page() -> None:
    assert [name for name in transducer.__all__ if f"`{name}" not in PAGE] == []
