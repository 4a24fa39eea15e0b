from speechmeter.core.machine import available_cores
from speechmeter.engine import disturbance
from speechmeter.engine.disturbance import Watch, disturbances

CORES = len(available_cores())


def judged(monkeypatch, *, governor=None, **after):
    monkeypatch.setattr(disturbance, "read_text", lambda path: governor)
    before = Watch(at_s=0, own_s=0, busy_s=100, throttled=0)
    later = Watch(**{"at_s": 10, "own_s": 10, "busy_s": 110, "throttled": 0, **after})
    found, warnings = disturbances(before, later)
    return {m.metric: m.values[0] for m in found}, warnings


def test_own_work_is_no_disturbance(monkeypatch):
    found, warnings = judged(monkeypatch)
    assert found == {"other_busy.v1": 0.0}
    assert warnings == []


def test_work_of_others_is_a_share_of_the_cores(monkeypatch):
    found, (warning,) = judged(monkeypatch, busy_s=100 + 10 + 10 * 0.5 * CORES)
    assert found == {"other_busy.v1": 0.5}
    assert "another process was busy: 50% of the cores" in warning
    assert "close it" in warning


def test_a_window_too_short_for_the_kernels_clock_says_nothing(monkeypatch):
    found, warnings = judged(monkeypatch, at_s=0.2, busy_s=200)
    assert (found, warnings) == ({}, [])


def test_throttling_and_the_governor_are_named(monkeypatch):
    _, (warning,) = judged(monkeypatch, throttled=3)
    assert "throttled by heat" in warning
    _, (warning,) = judged(monkeypatch, governor="powersave")
    assert "governor is powersave" in warning
    assert judged(monkeypatch, governor="performance")[1] == []


def test_the_kernel_counts_this_process():
    before = Watch.now()
    while Watch.now().own_s - before.own_s < 0.1:
        sum(range(100_000))
    assert Watch.now().busy_s - before.busy_s > 0.05
