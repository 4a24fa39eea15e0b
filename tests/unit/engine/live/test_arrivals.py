"""Conversations that arrive at a rate: their moments, the queue that a slow server causes, and what is measured."""

import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from live_rounds import PROTOCOL, held, known, utterance

from speechmeter.analysis.live import measurements
from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.live import Conditions, Event, Live
from speechmeter.engine.live.arrivals import arrivals_of

ONE = utterance(audio_s=0.5, start_s=0.0, end_s=0.4)


def moments(arrivals, rate=10.0, seed="0", **keys):
    return arrivals_of(replace(PROTOCOL, arrivals=arrivals, **keys), rate, seed, 1)


def test_constant_arrivals_are_at_equal_intervals():
    assert moments("constant", turns=5) == pytest.approx((0.0, 0.1, 0.2, 0.3, 0.4))
    assert len(moments("constant", duration_s=2.0)) == 20
    assert moments("constant", duration_s=2.0, turns=3) == pytest.approx((0.0, 0.1, 0.2))


@pytest.mark.parametrize(("arrivals", "shape"), [("poisson", 1.0), ("gamma:0.5", 0.5), ("gamma:4", 4.0)])
def test_intervals_have_their_distribution(arrivals, shape):
    from scipy import stats

    found = moments(arrivals, turns=4000)
    gaps = np.diff((0.0, *found))
    assert stats.kstest(gaps, stats.gamma(shape, scale=0.1 / shape).cdf).pvalue > 0.01
    # and not that of another shape, so that the test can fail
    assert stats.kstest(gaps, stats.gamma(shape * 1.5, scale=0.1 / shape / 1.5).cdf).pvalue < 1e-6
    # intervals say nothing of the next one
    assert abs(np.corrcoef(gaps[:-1], gaps[1:])[0, 1]) < 0.06


def test_moments_follow_from_the_seed_alone():
    assert moments("poisson", turns=9) == moments("poisson", turns=9) != moments("poisson", turns=9, seed="1")
    assert moments("poisson", turns=9)[:5] == moments("poisson", turns=5)


def test_a_trace_is_as_it_was_recorded():
    assert moments("trace", offsets_s=(0.0, 0.3, 7.0)) == (0.0, 0.3, 7.0)
    assert moments("trace", offsets_s=(0.0, 0.3, 7.0), duration_s=1.0) == (0.0, 0.3)
    assert arrivals_of(PROTOCOL, None, "0", 3) is None


def test_arrivals_that_measure_nothing_or_too_much_are_refused():
    with pytest.raises(InputError, match="within the ramp"):
        moments("constant", turns=5, ramp_s=1.0)
    with pytest.raises(InputError, match="more than 100000"):
        moments("constant", rate=1e6, duration_s=1.0)


class Queue:
    """A server that answers one request after another, each after `service_s`, and nothing during a stall."""

    def __init__(self, service_s, stall=(0.0, 0.0)):
        self.service_s, self.stall, self.free_s = service_s, stall, 0.0

    def live(self):
        return Live(converse=lambda clock: Asked(self, clock), isolation="shared", virtual=True, whole=True)

    def takes(self, now_s):
        """When a request that comes now is answered: worked on one at a time, and not during the stall."""
        begin_s = max(now_s, self.free_s)
        end_s = begin_s + self.service_s
        if begin_s < self.stall[1] and end_s > self.stall[0]:
            end_s += self.stall[1] - max(begin_s, self.stall[0])
        self.free_s = end_s
        return end_s


class Asked:
    def __init__(self, queue, clock):
        self.queue, self.clock, self.answer_s = queue, clock, None

    async def open(self):
        pass

    async def send(self, pcm):
        pass

    async def finish(self):
        self.answer_s = self.queue.takes(self.clock.now())

    async def events(self):
        while self.answer_s is None:
            await self.clock.sleep_until(self.clock.now())
        await self.clock.sleep_until(self.answer_s)
        yield Event(kind="final", moment_s=self.clock.now(), text="one")

    async def close(self):
        pass


def latencies(exchanges):
    found = {one.metric: one for one in measurements(exchanges, CONDITIONS)}
    return found[metrics.REQUEST_LATENCY.id].values


CONDITIONS = Conditions(pace="fast", chunk_s=0.5, turn_end="system", quiet_s=3.0, arrivals="constant")


def test_a_server_that_stalls_for_two_seconds_shows_the_queue_that_it_causes():
    queue = Queue(0.05, stall=(1.0, 3.0))
    open_loop = held(queue.live(), [ONE], pace="fast", chunk_s=0.5, arrivals="constant", rate=10.0, turns=60).exchanges
    # by hand: the first request of the stall waits for all of it, and each later one for 0.05 s less
    due, free, truth = [number / 10 for number in range(60)], 0.0, []
    for moment in due:
        begin = max(moment, free)
        begin = 3.0 if 1.0 <= begin < 3.0 else begin
        free = begin + 0.05
        truth.append(free - moment)
    assert latencies(sorted(open_loop, key=lambda one: one.due_s)) == pytest.approx(tuple(truth))
    assert max(truth) == pytest.approx(2.05)
    assert sum(one > 1.02 for one in truth) == 21
    # one after another, the same stall is seen by one request alone: that is what hides a queue
    closed = held(Queue(0.05, stall=(1.0, 3.0)).live(), [ONE], pace="fast", chunk_s=0.5, turns=60).exchanges
    assert sum(one > 1.02 for one in latencies(closed)) == 1


def test_random_arrivals_wait_as_the_queue_says():
    queue = Queue(0.08)
    found = held(queue.live(), [ONE], pace="fast", chunk_s=0.5, arrivals="poisson", rate=10.0, turns=400).exchanges
    due, free, truth = moments("poisson", turns=400), 0.0, []
    for moment in due:
        free = max(moment, free) + 0.08
        truth.append(free - moment)
    assert latencies(sorted(found, key=lambda one: one.due_s)) == pytest.approx(tuple(truth), abs=1e-6)
    assert {one.started_s - one.due_s for one in found} == {0.0}


def test_the_ramp_is_held_and_not_measured():
    found = held(Queue(0.05).live(), [ONE], pace="fast", chunk_s=0.5, arrivals="constant", rate=10.0, turns=10,
                 ramp_s=0.35).exchanges  # fmt: skip
    assert [one.warm_up for one in sorted(found, key=lambda one: one.due_s)] == [True] * 4 + [False] * 6


def test_paced_conversations_arrive_and_overlap():
    one = utterance(audio_s=3.0)
    found = held(known([one], final_s=0.25), [one], arrivals="constant", rate=2.0, turns=6).exchanges
    starts = sorted(exchange.started_s for exchange in found)
    assert [after - before for before, after in pairwise(starts)] == pytest.approx([0.5] * 5)
    assert all(exchange.sends[0].sent_s == pytest.approx(0.1) for exchange in found)
    assert max(starts) < min(exchange.started_s + exchange.ended_s for exchange in found)


def test_a_slow_client_shows_late_starts():
    """The loop is blocked for 0.2 s when the third request is due: the client, not the server, is late."""

    class Blocking(Asked):
        async def send(self, pcm):
            if self.queue.free_s == 0.2:
                self.queue.free_s = 0.0
                time.sleep(0.2)

    queue = Queue(0.0)
    queue.free_s = 0.2
    live = Live(converse=lambda clock: Blocking(queue, clock), isolation="shared", whole=True)
    found = held(live, [ONE], pace="fast", chunk_s=0.5, arrivals="constant", rate=20.0, turns=4).exchanges
    late = {m.metric: m for m in measurements(found, CONDITIONS)}[metrics.CLIENT_QUEUE.id].values
    assert max(late) > 0.1
