"""The selftest of systems that speak: exact truths for all metrics."""

from speechmeter.analysis.live.measure import SPEECH_READERS
from speechmeter.api import selftest_speech
from speechmeter.core import metrics


def test_every_metric_of_speech_has_a_truth_and_equals_it():
    assert set(selftest_speech.TRUTHS) == set(SPEECH_READERS)
    finding = selftest_speech.speech_finding()
    assert (finding.state, finding.reading, finding.trouble) == ("passed", float(len(SPEECH_READERS)), "")


def test_a_broken_metric_is_named(monkeypatch):
    broken = {**selftest_speech.TRUTHS, metrics.CLIPPING: (1.0, 1.0)}
    monkeypatch.setattr(selftest_speech, "TRUTHS", broken)
    assert selftest_speech.speech_finding().trouble == "wrong: clipping"
