"""Time on the virtual clock is exact, costs nothing, and cannot hang; the real clock is never early."""

import asyncio
from time import perf_counter

import pytest

from speechmeter.engine.live.clock import run


def test_virtual_moments_are_exact_and_in_order():
    reached = []

    async def work(clock):
        async def wait(moment, name):
            await clock.sleep_until(moment)
            reached.append((clock.now(), name))

        await asyncio.gather(wait(0.3, "c"), wait(0.1, "a"), wait(0.1, "b"), wait(3600.0, "d"))

    run(work, virtual=True)
    assert reached == [(0.1, "a"), (0.1, "b"), (0.3, "c"), (3600.0, "d")]


def test_asyncio_itself_goes_by_the_virtual_clock():
    async def work(clock):
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.get_running_loop().create_future(), 50.0)
        await asyncio.sleep(5.0)
        return clock.now()

    assert run(work, virtual=True) == 55.0


def test_an_hour_of_chunks_is_simulated_in_no_time():
    async def work(clock):
        for number in range(1, 36_001):
            await clock.sleep_until(number * 0.1)
        return clock.now()

    assert run(work, virtual=True) == 3600.0


def test_a_virtual_wait_without_an_end_is_an_error_not_a_hang():
    async def work(clock):
        await asyncio.get_running_loop().create_future()

    with pytest.raises(RuntimeError, match="the simulated time stopped"):
        run(work, virtual=True)


def test_a_cancelled_virtual_wait_leaves_no_time_behind():
    async def work(clock):
        waiting = asyncio.ensure_future(clock.sleep_until(100.0))
        await clock.sleep_until(1.0)
        waiting.cancel()
        await asyncio.wait({waiting})
        await clock.sleep_until(2.0)
        return clock.now()

    assert run(work, virtual=True) == 2.0


def test_the_real_clock_is_never_early_and_lets_others_run():
    async def work(clock):
        begun = clock.now()
        await clock.sleep_until(begun + 0.02)
        late = clock.now() - begun - 0.02
        others = []
        task = asyncio.ensure_future(asyncio.sleep(0, others.append(1)))
        await clock.sleep_until(begun)  # in the past
        await task
        return late, others

    late, others = run(work)
    assert late >= 0
    assert others == [1]


def test_tasks_that_are_left_behind_are_ended():
    ended = []

    async def work(clock):
        async def endless():
            try:
                await clock.sleep_until(perf_counter() + 1000)
            finally:
                ended.append(True)

        task = asyncio.ensure_future(endless())
        await asyncio.sleep(0)
        assert not task.done()

    run(work)
    assert ended == [True]
