"""Live WER against the WER of the same system fed offline."""

import pytest
from tests.live_records import case, ratios, record

from speechmeter.analysis.live.delta import live_wer_delta, offline_partner
from speechmeter.core import metrics
from speechmeter.core.axes import Axes
from speechmeter.core.protocol import RepeatsProtocol
from speechmeter.core.types import Case, Measurement, Record

NAMES = [f"u{number:02}" for number in range(30)]
WORDS = 10.0


def offline(errors, words=WORDS, of=None, normaliser="basic.v2"):
    live = of or case()
    fed = Case(
        subject=live.subject, workload=live.workload, axes=Axes({"device": "cpu", "batch": 1}), meters=("quality",),
        protocol=RepeatsProtocol(discard=0, samples=1),
    )  # fmt: skip
    found = (
        Measurement.of(metrics.ANSWERED, [1.0] * len(errors), notes={"utterances": list(errors)}),
        Measurement.of(metrics.WORD_ERRORS, list(errors.values()), notes={"normaliser": normaliser}),
        Measurement.of(metrics.REFERENCE_WORDS, [words] * len(errors)),
    )
    return [Record(case=fed, round=0, sequence=0, status="ok", measurements=found)]


def live(errors, count=5, of=None):
    pairs = {name: (one, WORDS) for name, one in errors.items()}
    return [record(of or case(), number, list(errors), ratios(pairs)) for number in range(count)]


def test_the_difference_is_over_the_utterances_that_both_have():
    fed = dict.fromkeys(NAMES, 1.0) | {"warm-up": 10.0}
    heard = dict.fromkeys(NAMES, 2.0)
    found = live_wer_delta(live(heard), offline(fed))
    assert found.estimate.value == pytest.approx(10.0)  # 20 % live, 10 % whole
    assert found.estimate.samples_per_round == 30
    assert (found.order, found.estimate.low > 0) == ("worse", True)
    same = live_wer_delta(live(heard), offline(heard))
    assert (same.order, same.estimate.value) == ("same", 0.0)


@pytest.mark.parametrize(
    "partner, reason",
    [
        ([], "no offline case"),
        (offline(dict.fromkeys(NAMES, 1.0), words=9.0), "have different reference texts"),
        (offline(dict.fromkeys(NAMES, 1.0), normaliser="english.v2"), "or text normalisers"),
        (offline({"another": 1.0}), "no live WER"),
    ],
)
def test_what_cannot_be_paired_is_refused_with_the_reason(partner, reason):
    found = live_wer_delta(live(dict.fromkeys(NAMES, 1.0)), partner)
    assert found.estimate is None
    assert reason in found.reason


def test_the_partner_is_the_same_system_on_the_same_data():
    mine, other = offline({"u": 1.0}), offline({"u": 1.0}, of=case("b"))
    assert offline_partner(case(), [other, live({"u": 1.0}), mine]) == mine
    assert list(offline_partner(case("c"), [other, mine])) == []
