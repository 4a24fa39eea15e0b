"""The sketch of outputs: equal where they are equal, and as far apart as they are."""

from types import SimpleNamespace

import numpy as np
import pytest

from speechmeter.analysis.tuned import guard
from speechmeter.core import metrics
from speechmeter.core.tuning import GOALS, Tuning, keep_of
from speechmeter.core.types import Batch
from speechmeter.meters.outputs import OutputsMeter, sketch


def read(*outputs, items=1, ids=()):
    batches = [Batch(data=value, items=items, ids=ids) for value in outputs]
    session = SimpleNamespace(all_batches=batches, call=lambda batch: [None, batch.data])
    return OutputsMeter().measure(session)


def record(*outputs, **fields):
    found = {m.metric: m for m in read(*outputs, **fields)}
    return SimpleNamespace(find=lambda metric: found.get(metric))


def refusal(new, default, *keeps):
    asked = Tuning(goal=GOALS["rtfx"], keeps=tuple(map(keep_of, keeps)), axes={"threads": (2, 1)})
    return guard([new], [default], asked)


def test_the_distance_of_two_sketches_is_that_of_the_outputs():
    draw = np.random.default_rng(3)
    one, other = draw.normal(size=(50, 64)), draw.normal(size=(50, 64))
    apart = sum((a - b) ** 2 for a, b in zip(sketch(one)[1:], sketch(other)[1:], strict=True))
    assert apart == pytest.approx(((one - other) ** 2).sum(), rel=0.3)
    assert sketch(one) == sketch(one.copy())


def test_outputs_within_the_tolerance_pass_and_others_do_not():
    default = np.random.default_rng(4).normal(size=(1, 200))
    assert refusal(record(default), record(default)) == ""
    assert refusal(record(default * 1.02), record(default)) == ""
    assert "differ from those of the default by 10.0%" in refusal(record(default * 1.1), record(default))
    assert refusal(record(default * 1.1), record(default), "outputs<=20%") == ""


def test_outputs_of_another_size_or_kind_cannot_be_compared():
    default = np.ones((1, 20))
    assert "another size" in refusal(record(np.ones((1, 24))), record(default))
    assert "neither text nor numbers" in refusal(record(object()), record(default))


def test_values_that_are_not_finite_are_counted_and_refused():
    broken = np.array([[1.0, np.nan, np.inf]])
    (_, count) = read(broken)
    assert (count.metric, count.values) == (metrics.OUTPUT_NOT_FINITE.id, (2.0,))
    assert "2 values" in refusal(record(broken), record(np.ones((1, 3))))


def test_text_passes_only_if_every_item_is_the_same():
    default = record(["a b", "c"], items=2, ids=("x", "y"))
    assert refusal(record(["a  b", "c"], items=2, ids=("x", "y")), default) == ""
    assert "1 of 2 texts differ" in refusal(record(["a b", "d"], items=2, ids=("x", "y")), default)


def test_items_are_compared_whatever_batch_they_were_in():
    whole = record(np.arange(12.0).reshape(2, 6), items=2, ids=("x", "y"))
    rows = [SimpleNamespace(items=1, ids=(name,), data=np.arange(12.0).reshape(2, 6)[at : at + 1])
            for at, name in enumerate("xy")]  # fmt: skip
    session = SimpleNamespace(all_batches=rows, call=lambda batch: [batch.data])
    found = {m.metric: m for m in OutputsMeter().measure(session)}
    assert refusal(SimpleNamespace(find=found.get), whole) == ""
