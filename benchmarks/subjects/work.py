"""Subjects of known relative cost: the same piece of work a stated number of times, 100, 105 or 110.

Without torch, so that a fresh process is there in half a second and its neighbour is measured seconds later.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from speechmeter import Prepared, Stage

_ROWS, _WIDTH = 640, 384
"""A piece takes about two milliseconds on one core, so a call lasts as long as one of wav2vec2-base on two seconds."""


def _work(times: int) -> Prepared:
    generator = np.random.default_rng(0)
    weight = generator.standard_normal((_WIDTH, _WIDTH), dtype=np.float32) / np.float32(_WIDTH**0.5)
    start = generator.standard_normal((_ROWS, _WIDTH), dtype=np.float32)

    def call(batch: Any) -> Any:
        state = start
        for _ in range(times):
            state = np.tanh(state @ weight)
        return state

    return Prepared(stages=(Stage(name="model", fn=call),))


def first() -> Prepared:
    """The work a hundred times."""
    return _work(100)


def second() -> Prepared:
    """The same again: A/A."""
    return _work(100)


def plus5() -> Prepared:
    """A true 5 % more."""
    return _work(105)


def plus10() -> Prepared:
    """A true 10 % more."""
    return _work(110)
