"""The latency meter against a truth that is clocked inside the subject."""

from time import perf_counter, sleep

import pytest
from conftest import make_case

from speechmeter.core.protocols import Prepared
from speechmeter.core.types import Batch, Stage
from speechmeter.engine.measure import measure
from speechmeter.meters.latency import BLOCK_BELOW_NS, LatencyMeter, StageClock

SLACK_S = 0.002


class Chain:
    """A subject and its workload from a list of stages."""

    def __init__(self, *stages, sync=lambda: None):
        self._prepared = Prepared(stages=stages, sync=sync)

    def prepare(self, case, device):
        return self._prepared

    def batches(self, case):
        yield Batch(data=None, items=2, audio_s=4.0)


def latency(*stages, sync=lambda: None, **case):
    chain = Chain(*stages, sync=sync)
    outcome = measure(make_case(**case), chain, chain, [LatencyMeter()])
    assert outcome.status == "ok", outcome.reason
    return {(m.metric, m.scope): m for m in outcome.measurements}


class Clocked:
    """A stage that sleeps and clocks itself."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.truth = []

    def __call__(self, state):
        start = perf_counter()
        sleep(self.seconds)
        self.truth.append(perf_counter() - start)
        return state


def test_every_sample_equals_the_subjects_own_clock():
    stage = Clocked(0.02)
    found = latency(Stage(name="model", fn=stage))
    values = found["latency.v1", "total"].values
    assert len(values) == 3
    for value, truth in zip(values, stage.truth[-3:], strict=True):
        assert truth <= value < truth + SLACK_S


def test_glue_outside_the_clock_has_a_row_and_is_not_in_the_total():
    first, glue, last = Clocked(0.02), Clocked(0.05), Clocked(0.01)
    found = latency(Stage(name="asr", fn=first), Stage(name="glue", fn=glue, clocked=False), Stage(name="tts", fn=last))
    total = found["latency.v1", "total"].values[-1]
    assert total == pytest.approx(first.truth[-1] + last.truth[-1], abs=SLACK_S)
    assert found["latency.v1", "stage:glue"].values[-1] == pytest.approx(glue.truth[-1], abs=SLACK_S)
    assert found["latency.v1", "stage:glue"].notes["clocked"] is False


def test_an_iterators_work_is_inside_the_clock_and_its_items_are_stamped():
    def stream(state):
        for word in ("one", "two", "three"):
            sleep(0.01)
            yield word

    seen = []
    found = latency(Stage(name="model", fn=stream), Stage(name="decode", fn=seen.append))
    assert min(found["latency.v1", "stage:model"].values) >= 0.03
    assert seen[0] == ["one", "two", "three"]
    first = found["latency_first_item.v1", "stage:model"].values
    assert all(0.01 <= value < 0.03 for value in first)
    assert len(found["latency_item.v1", "stage:model"].values) == 2 * len(first)


def test_work_still_on_the_device_is_waited_for():
    """A device that works behind the caller's back: only a sync at both edges sees it."""
    pending = []

    def sync():
        while pending:
            sleep(pending.pop())

    found = latency(Stage(name="model", fn=lambda state: pending.append(0.02)), sync=sync)
    assert min(found["latency.v1", "total"].values) >= 0.02


@pytest.mark.parametrize(("boundary", "inside"), [("model", 0.01), ("+decode", 0.03), ("+features", 0.07)])
def test_the_boundary_decides_what_is_in_the_total(boundary, inside):
    features, model, decode = Clocked(0.04), Clocked(0.01), Clocked(0.02)
    found = latency(
        Stage(name="features", fn=features),
        Stage(name="model", fn=model),
        Stage(name="decode", fn=decode),
        boundary=boundary,
    )
    values = found["latency.v1", "total"].values
    assert min(values) >= inside
    excess = [d.truth[-1] - d.seconds for d in (features, model, decode)]
    assert values[-1] < inside + sum(excess) + SLACK_S
    assert ("latency.v1", "stage:features") in found


def test_loading_joins_the_clock_only_when_asked():
    found = latency(Stage(name="model", fn=Clocked(0.001)), boundary="+load")
    assert found["latency.v1", "stage:load"].notes["clocked"] is True
    found = latency(Stage(name="model", fn=Clocked(0.001)))
    assert found["latency.v1", "stage:load"].notes["clocked"] is False


def test_calls_too_short_for_the_clock_are_timed_in_blocks():
    calls = []
    found = latency(Stage(name="model", fn=lambda state: calls.append(1)))
    total = found["latency.v1", "total"]
    assert total.notes["block"] > 1
    assert max(total.values) * 1e9 < BLOCK_BELOW_NS
    assert len(calls) > 3 * total.notes["block"]


def test_warm_up_is_kept_apart():
    stage = Clocked(0.01)
    found = latency(Stage(name="model", fn=stage), protocol={"warmup": 4})
    assert len(found["latency_warmup.v1", "total"].values) == 4
    assert len(found["latency.v1", "total"].values) == 3
    assert len(stage.truth) == 1 + 4 + 3


def test_a_stage_clock_measures_what_one_call_takes():
    stage = Clocked(0.01)
    clock = StageClock([Stage(name="model", fn=stage)], lambda: None)
    spent = clock.sample(Batch(data=None, items=1))
    assert stage.truth[0] <= spent / 1e9 < stage.truth[0] + SLACK_S
