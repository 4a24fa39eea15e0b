"""Peaks by a clock that is told beforehand how long each piece of work takes."""

import pytest
from conftest import make_case

from speechmeter.core.protocols import Prepared
from speechmeter.core.types import Batch, Stage
from speechmeter.engine.measure import measure
from speechmeter.meters import peaks
from speechmeter.meters.peaks import PeaksMeter

torch = pytest.importorskip("torch", reason="peaks are measured with torch")

COPIED = 1000
COPIES_S = (9.0, 0.4, 0.1, 0.2, 0.5, 0.8)  # the first warms up and is no try


class Clock:
    """Work number n takes `durations_s[n]`; every look and every wait for the device is written down."""

    def __init__(self, durations_s):
        self._durations_s = iter(durations_s)
        self._now_s = 0.0
        self._working = False
        self.seen = []

    def __call__(self):
        if self._working:
            self._now_s += next(self._durations_s)
        self._working = not self._working
        self.seen.append("clock")
        return self._now_s

    def sync(self):
        self.seen.append("sync")

    @property
    def left(self):
        return list(self._durations_s)


def peaks_by(monkeypatch, durations_s, sides, **axes):
    clock = Clock(durations_s)
    monkeypatch.setattr(peaks, "perf_counter", clock)
    monkeypatch.setattr(peaks, "_SIDES", sides)
    monkeypatch.setattr(peaks, "_COPY_BYTES", {"cpu": COPIED})

    class Subject:
        def prepare(self, case, device):
            return Prepared(stages=(Stage(name="model", fn=lambda batch: None),), sync=clock.sync)

        def batches(self, case):
            yield Batch(data=None, items=1)

    outcome = measure(make_case(**axes), Subject(), Subject(), [PeaksMeter()])
    assert outcome.status == "ok", outcome.reason
    assert clock.left == []
    found = {m.metric: m for m in outcome.measurements}
    return found["peak_flops.v1"], found["peak_bandwidth.v1"], clock


def test_the_fastest_try_is_the_peak_and_all_tries_are_kept(monkeypatch):
    tries_s = (0.05, 0.04, 0.02, 0.08, 0.10)
    flops, bandwidth, _ = peaks_by(monkeypatch, (*[0.03] * 5, *tries_s, *COPIES_S), sides=(8, 16))
    assert flops.values == pytest.approx((2 * 8**3 / 0.02,))
    assert flops.notes["side"] == 8
    assert flops.notes["tries"] == pytest.approx([2 * 8**3 / took_s for took_s in tries_s])
    assert bandwidth.values == pytest.approx((2 * COPIED / 0.1,))  # read once, written once
    assert bandwidth.notes["bytes"] == COPIED
    assert bandwidth.notes["tries"] == pytest.approx([2 * COPIED / took_s for took_s in COPIES_S[1:]])


def test_the_side_is_the_smallest_that_takes_long_enough(monkeypatch):
    busy_s = (0.5, 0.5, 0.5, 0.5, 0.019)  # by the fastest of five: a first one holds a start, other work delays any
    flops, _, _ = peaks_by(monkeypatch, (*[0.001] * 5, *busy_s, *[0.02] * 10, *COPIES_S), sides=(2, 4, 8, 16))
    assert flops.notes["side"] == 8
    assert flops.values == pytest.approx((2 * 8**3 / 0.02,))


def test_a_device_that_is_too_fast_gets_the_largest_side(monkeypatch):
    flops, _, _ = peaks_by(monkeypatch, (*[0.001] * 10, *[0.004] * 5, *COPIES_S), sides=(2, 4))
    assert flops.notes["side"] == 4
    assert flops.values == pytest.approx((2 * 4**3 / 0.004,))


def test_the_device_is_waited_for_at_both_edges_of_every_work(monkeypatch):
    *_, clock = peaks_by(monkeypatch, (*[0.03] * 10, *COPIES_S), sides=(2,))
    pieces = 10 + len(COPIES_S)
    assert clock.seen[-4 * pieces :] == ["sync", "clock"] * 2 * pieces


def test_products_are_in_the_dtype_of_the_case(monkeypatch):
    seen = set()
    real = torch.mm

    def product(left, right):
        seen.add((left.dtype, right.dtype, tuple(left.shape)))
        return real(left, right)

    monkeypatch.setattr(torch, "mm", product)
    peaks_by(monkeypatch, (*[0.03] * 10, *COPIES_S), sides=(2,), dtype="bfloat16")
    assert seen == {(torch.bfloat16, torch.bfloat16, (2, 2))}
