"""The selftest of live metrics: exact truths for all of them, and a busy machine is a warning."""

import pytest

from speechmeter.analysis.live.measure import READERS
from speechmeter.api import selftest_live
from speechmeter.api.finding import Finding
from speechmeter.core import metrics


def test_every_live_metric_has_a_truth_and_equals_it():
    assert set(selftest_live.TRUTHS) == set(READERS)
    finding = selftest_live._exact_finding()
    assert (finding.state, finding.reading, finding.trouble) == ("passed", float(len(READERS)), "")


def test_a_broken_metric_is_named(monkeypatch):
    broken = READERS[metrics.WORD_LAG_FIRST]
    monkeypatch.setitem(READERS, metrics.PARTIAL_GAP, broken)
    finding = selftest_live._exact_finding()
    assert finding.state == "failed"
    assert finding.trouble == "wrong: partial_gap"


@pytest.mark.parametrize(("of_host", "state"), [(True, "warning"), (False, "failed")])
def test_a_figure_of_the_host_warns_and_a_meter_fails(of_host, state):
    finding = Finding(meter="m", what="w", unit="s", truth=0.0, tolerance=1.0, reading=2.0, of_host=of_host)
    assert finding.state == state


def test_in_real_time_the_final_and_the_pace_are_read(monkeypatch):
    monkeypatch.setattr(selftest_live, "_REAL_TURNS", 1)
    final, late = selftest_live._real_findings()
    assert final.reading >= final.truth == 0.25
    assert late.reading >= 0
    assert {final.state, late.state} <= {"passed", "warning"}
    assert all(bool(one.trouble) == (one.state == "warning") for one in (final, late))
