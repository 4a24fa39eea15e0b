"""FLOPs of random models that count their own arithmetic by hand: none is silently wrong.

Once by what the count on shapes notices itself, without the check on a real run, and once as a run has it.
"""

from dataclasses import replace

import pytest
from conftest import make_case

torch = pytest.importorskip("torch", reason="needs torch")

from random_models import RandomModel  # noqa: E402

from speechmeter.core.protocols import Prepared  # noqa: E402
from speechmeter.core.types import Batch, Stage  # noqa: E402
from speechmeter.engine.measure import measure  # noqa: E402
from speechmeter.engine.phases import SHAPES  # noqa: E402
from speechmeter.meters.flops.meter import SHAPES_THEN_REAL, FlopsMeter  # noqa: E402

FEW, MANY = range(60), range(60, 300)
UNCHECKED = (replace(SHAPES_THEN_REAL[0], check_next=lambda found: False), *SHAPES_THEN_REAL[1:])


class Subject:
    """A random model and the sound that it is fed."""

    def __init__(self, seed):
        self.seed = seed

    def prepare(self, case, device):
        model = RandomModel(self.seed).eval()
        stage = Stage(name="model", fn=lambda batch: called(model, batch.data))
        return Prepared(stages=(stage,), modules={"model": model}, close=model.close)

    def batches(self, case):
        yield Batch(data=RandomModel(self.seed).sound, items=1)


@torch.no_grad()
def called(model, sound):
    return model(sound)


def truth(seed):
    """What a second call does, as the model itself counts it."""
    model = RandomModel(seed).eval()
    called(model, model.sound)
    model.tally[0] = 0
    called(model, model.sound)
    model.close()
    return model.tally[0]


def check(seed, ways):
    subject = Subject(seed)
    case = make_case(meters=("flops",))
    outcome = measure(case, subject, subject, [FlopsMeter()], process=SHAPES, ways=ways)
    what = f"{RandomModel(seed).what} (seed {seed})"
    assert outcome.status == "ok", f"{what}: {outcome.reason}"
    (found,) = [m for m in outcome.measurements if (m.metric, m.scope) == ("flops.v1", "total")]
    assert found.values == (truth(seed),), f"{what}: {found}"
    assert found.notes["unknown"] == {}, what


@pytest.mark.parametrize("seed", FEW)
def test_a_random_model_is_counted_right_without_the_check_on_a_real_run(seed):
    check(seed, UNCHECKED)


@pytest.mark.parametrize("seed", FEW[::6])
def test_a_random_model_is_counted_right_in_a_run(seed):
    check(seed, SHAPES_THEN_REAL)


@pytest.mark.campaign
@pytest.mark.parametrize("ways", [UNCHECKED, SHAPES_THEN_REAL], ids=["unchecked", "checked"])
@pytest.mark.parametrize("seed", MANY)
def test_many_random_models_are_counted_right(seed, ways):
    check(seed, ways)
