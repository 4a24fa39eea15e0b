"""The feed of a long stream neither drifts nor loses samples, whatever one send costs."""

import importlib.util
from pathlib import Path

import pytest

from speechmeter.core.live import Send

SCRIPT = Path(__file__).parents[4] / "benchmarks" / "pacing.py"


def load():
    spec = importlib.util.spec_from_file_location("pacing", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_ten_minutes_of_short_chunks_do_not_drift():
    pacing = load()
    sends, watch = pacing.fed(600, 0.02, virtual=True)
    assert len(sends) == 30_000
    assert [one.sent_s for one in sends[:3]] == [0.02, 0.04, 0.06]
    assert sends[-1].sent_s == pytest.approx(600, abs=1e-9)
    assert pacing.drift(sends) == pytest.approx(0, abs=1e-12)
    assert watch.warnings("realtime", 0.02) == []


def test_drift_is_the_share_by_which_a_feed_is_slow():
    slow = [Send(due_s=n, sent_s=1.017 * n, done_s=1.017 * n, from_s=n - 1, to_s=n) for n in range(1, 11)]
    assert load().drift(slow) == pytest.approx(0.017)
