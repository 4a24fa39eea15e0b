"""Defects that were planted into a simulated recogniser on the virtual clock are found by their size, and none else."""

from functools import cache

import pytest
from tests.live_records import case
from tests.live_rounds import held, known, utterance

from speechmeter.analysis.compare import Lasting, verdict
from speechmeter.analysis.family import together
from speechmeter.analysis.live import measurements
from speechmeter.analysis.metric_names import compared_metrics
from speechmeter.core import metrics
from speechmeter.core.live import Conditions
from speechmeter.core.types import Record

SHORT = [utterance(f"u{number}", "one two three four five") for number in range(20)]
LONG = [
    utterance(f"long{number}", " ".join(f"w{n}" for n in range(16)), audio_s=66.0, start_s=1.0, end_s=65.0)
    for number in range(10)
]
CONDITIONS = Conditions(pace="realtime", chunk_s=0.1, turn_end="oracle", quiet_s=3.0)
AT_ONCE = {"chunk_s": 1.0, "streams": len(LONG), "turns": 1}
USUAL = {"delay_s": 0.1, "final_s": 0.3, "spread_s": 0.2}
"""Finals vary by up to 200 ms from utterance to utterance, and in each round anew."""


@cache
def measured(name, *script, many=False, count=5):
    """Five rounds of a recogniser, as records."""
    said = LONG if many else SHORT
    made = []
    for number in range(count):
        seed = f"{name}{number}"
        live = known(said, **{**USUAL, "seed": seed, **dict(script)})
        found = held(live, said, turn_end="oracle", turn_delay_s=0.3, **(AT_ONCE if many else {})).exchanges
        made.append(
            Record(
                case=case(name), round=number, sequence=2 * number, status="ok",
                measurements=tuple(measurements(found, CONDITIONS)),
            )
        )  # fmt: skip
    return made


def compared(*script, many=False):
    """The verdicts of `compare --metric live --min-effect 30ms`, and on the growth of delays."""
    segments = (("segment_words", 1),) if many else ()  # finals say how far they are
    base, new = measured("base", *segments, many=many), measured("new", *segments, *script, many=many)
    asked = [metric for metric, _ in compared_metrics("live", base, new)]
    asked += [metrics.KEEP_UP] if many else []
    found = [
        verdict(base, new, metric, Lasting(0.03) if metric.unit == "s" else 0.05, together=True) for metric in asked
    ]
    return {v.metric: v for v in together(found).verdicts}


def words(found):
    return {metric.name: v.text for metric, v in found.items() if v.word != "SAME"}


def test_an_unchanged_recogniser_is_not_called_different():
    found = compared()
    assert not any(v.regression for v in found.values())
    assert set(words(found).values()) <= {"CANNOT TELL"}
    final = found[metrics.FINAL_DELAY].change
    assert final.low <= 0 <= final.high


def test_150_ms_on_every_final_are_found():
    found = compared(("extra_s", 0.15))
    change = found[metrics.FINAL_DELAY].change
    assert (found[metrics.FINAL_DELAY].word, found[metrics.FINAL_DELAY].regression) == ("SLOWER", True)
    assert change.low <= 0.15 <= change.high
    assert change.high - change.low < 0.12
    assert words(found) == {"final_delay": "SLOWER"}


def test_planted_churn_is_found():
    found = compared(("unstable_words", 1))
    churn = found[metrics.PARTIAL_CHURN]
    assert (churn.word, churn.regression) == ("MORE", True)
    # of five words, each but the last is shown as wrong once and then corrected; the last by the final
    assert churn.change.value == pytest.approx(1.0)
    assert words(found).get("final_delay") in (None, "CANNOT TELL")
    assert words(found)["word_lag"] == "SLOWER"  # a wrong word comes right with the next one


def test_dropped_finals_are_found():
    found = compared(("lose_final", 0.4))
    complete = found[metrics.LIVE_COMPLETENESS]
    answered = [record.find(metrics.LIVE_ANSWERED.id).values for record in measured("new", ("lose_final", 0.4))]
    lost = 100 * (1 - sum(map(sum, answered)) / 100)
    assert (complete.word, complete.regression) == ("LESS", True)
    assert complete.change.value == pytest.approx(-lost)
    assert found[metrics.LIVE_WER].word == "MORE"  # all words of these count as deleted


def test_a_slow_leak_is_found():
    found = compared(("leak", 0.02), many=True)
    slope = found[metrics.KEEP_UP]
    assert (slope.word, slope.regression) == ("SLOWER", True)
    assert slope.change.low <= 0.02 <= slope.change.high
    assert slope.change.value == pytest.approx(0.02, abs=5e-4)
    late = found[metrics.FINAL_DELAY]
    assert late.word == "SLOWER"
    assert late.change.low <= 0.02 * 65.3 <= late.change.high  # all that was lost until the end of the input
