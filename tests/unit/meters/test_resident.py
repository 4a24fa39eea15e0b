"""The ways to read a process's peak: the kernel's mark on real memory, the fallbacks also on sizes made by hand."""

import time
from itertools import chain, repeat
from pathlib import Path

import pytest
from fresh_memory import fresh_pages

from speechmeter.core.machine import resident_bytes
from speechmeter.meters.resident import (
    HighWaterMark,
    MaxResident,
    Reading,
    Sampling,
    joined,
    max_resident_bytes,
    probes,
)

MIB = 2**20
NOWHERE = Path("/nonexistent/clear_refs")
real_mark = pytest.mark.skipif(not HighWaterMark().usable(), reason="the kernel's mark cannot be reset here")


def sizes(*values):
    """A size that takes these values in MiB one after another, then stays at the last."""
    left = chain(values, repeat(values[-1]))
    return lambda: next(left) * MIB


def fill(mib, held_s=0.0):
    def work():
        block = fresh_pages(mib)
        time.sleep(held_s)
        return len(block)

    return work


@real_mark
def test_the_mark_is_the_works_own_after_a_larger_piece():
    mark = HighWaterMark()
    mark.read(fill(256))
    reading = mark.read(fill(128))
    assert abs(reading.growth_bytes - 128 * MIB) < 2 * MIB
    assert reading.caveat == ""


def test_a_mark_that_cannot_be_reset_is_not_used(tmp_path):
    assert not HighWaterMark(NOWHERE).usable()
    assert not HighWaterMark(tmp_path).usable()  # a folder cannot be written


def test_rusage_is_exact_when_the_process_becomes_larger_than_ever():
    highest = max_resident_bytes()
    above = highest // MIB - resident_bytes() // MIB + 64
    reading = MaxResident(max_resident_bytes).read(fill(above))
    assert abs(reading.growth_bytes - above * MIB) < 2 * MIB
    assert reading.caveat == ""


def test_rusage_says_when_the_peak_is_older_than_the_work():
    reading = MaxResident(sizes(500), resident=sizes(300)).read(lambda: None)
    assert reading.growth_bytes == 200 * MIB
    assert reading.caveat.startswith("upper bound")


def test_rusage_without_the_size_before_is_a_lower_bound():
    reading = MaxResident(sizes(500, 540), resident=lambda: None).read(lambda: None)
    assert reading.growth_bytes == 40 * MIB
    assert reading.caveat.startswith("lower bound")


def test_sampling_finds_a_peak_that_lasts_and_calls_it_a_lower_bound():
    reading = Sampling().read(fill(64, held_s=0.3))
    assert 60 * MIB < reading.growth_bytes < 66 * MIB
    assert reading.caveat.startswith("lower bound")


def test_sampling_ends_its_thread_when_the_work_fails():
    looks = []

    def size():
        looks.append(1)
        return MIB

    with pytest.raises(ZeroDivisionError):
        Sampling(size).read(lambda: 1 / 0)
    seen = len(looks)
    time.sleep(0.02)
    assert len(looks) == seen


@pytest.mark.parametrize(
    ("peak", "resident", "names"),
    [
        (sizes(9), sizes(8), ["ru_maxrss", "sampling"]),
        (sizes(9), lambda: None, ["ru_maxrss"]),
        (lambda: None, sizes(8), ["sampling"]),
        (lambda: None, lambda: None, []),
    ],
)
def test_without_the_mark_the_next_best_is_chosen(peak, resident, names):
    assert [probe.source for probe in probes(NOWHERE, peak, resident)] == names


@real_mark
def test_the_mark_comes_first_where_it_works():
    assert next(iter(probes())).source == "VmHWM"


def test_the_reading_of_a_call_spans_from_before_its_first_stage_to_the_highest_peak_of_any():
    first = Reading(before_bytes=100, growth_bytes=30, peak_bytes=130)
    second = Reading(before_bytes=120, growth_bytes=40, peak_bytes=160)
    third = Reading(before_bytes=90, growth_bytes=5, peak_bytes=95)
    assert joined([first, second, third]) == Reading(before_bytes=100, growth_bytes=60, peak_bytes=160)


def test_a_caveat_of_one_stage_is_one_of_the_call_and_an_unknown_peak_stays_unknown():
    parts = [Reading(before_bytes=10, growth_bytes=1, peak_bytes=11), Reading(growth_bytes=2, caveat="lower bound")]
    assert joined(parts) == Reading(before_bytes=10, growth_bytes=1, caveat="lower bound")
