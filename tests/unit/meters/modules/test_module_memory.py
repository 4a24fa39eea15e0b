from __future__ import annotations

import pytest

from speechmeter.core.device import Device
from speechmeter.meters.modules import Peaks, module_memory
from speechmeter.meters.recording.label import MODULE


class Allocator:
    """Tells what is allocated now and the highest since it last forgot, as torch's does."""

    def __init__(self):
        self.held = self.peak = 100

    def take(self, size):
        self.held += size
        self.peak = max(self.peak, self.held)

    def forget(self):
        self.peak = self.held


def test_peaks_are_those_inside_and_not_those_before():
    memory = Allocator()
    peaks = Peaks(now=lambda: memory.held, highest=lambda: memory.peak, forget=memory.forget)
    memory.take(1000)
    memory.take(-1000)
    with peaks.open(MODULE + "outer"):
        memory.take(10)
        with peaks.open(MODULE + "outer.first"):
            memory.take(50)
            memory.take(-45)
        with peaks.open(MODULE + "outer.second"):
            memory.take(7)
    assert peaks.by_path == {"outer.first": 50, "outer.second": 7, "outer": 60}


def test_repeated_calls_keep_the_highest():
    memory = Allocator()
    peaks = Peaks(now=lambda: memory.held, highest=lambda: memory.peak, forget=memory.forget)
    for size in (5, 9, 3):
        with peaks.open(MODULE + "m"):
            memory.take(size)
            memory.take(-size)
    assert peaks.by_path == {"m": 9}


def test_cpu_has_no_peak_and_says_so():
    (found,) = module_memory(lambda: pytest.fail("no call is needed"), {}, (), Device.parse("cpu"))
    assert found.unavailable is not None
    assert "CPU" in found.unavailable
