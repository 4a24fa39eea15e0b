"""The table over utterances: parts beside the whole, and why a percentile is missing."""

from conftest import make_case, make_record

from speechmeter.core import metrics
from speechmeter.core.types import Measurement
from speechmeter.report import choose

TURNS = {"batches": 2}
CASCADE = make_record(
    make_case("chain"),
    Measurement.of(metrics.ITEMS, [1.0, 1.0]),
    Measurement.of(metrics.AUDIO_SECONDS, [1.0, 2.0]),
    Measurement.of(metrics.LATENCY, [0.3, 0.5], notes=TURNS),
    Measurement.of(metrics.LATENCY, [0.1, 0.2], scope="stage:asr.model", notes=TURNS),
    Measurement.of(metrics.LATENCY, [0.2, 0.3], scope="stage:tts.model", notes=TURNS),
)


def test_each_model_of_a_cascade_has_a_row():
    latency, factor = choose.tables([CASCADE], "utterances")
    found = {row.labels[1]: [cell.text() for cell in row.cells] for row in latency.rows}
    assert found == {
        "total": ["400 ms", "400 ms", "–", "500 ms", "2"],
        "asr": ["150 ms", "150 ms", "–", "200 ms", "2"],
        "tts": ["250 ms", "250 ms", "–", "300 ms", "2"],
    }
    assert any("p95 needs 59 utterances, but there are 2" in note for note in latency.notes)
    assert [cell.text() for cell in factor.rows[0].cells] == ["0.275", "0.275", "–", "0.300", "2"]


BATCHED = make_record(
    make_case("batched", batch=4),
    Measurement.of(metrics.ITEMS, [4.0, 4.0]),
    Measurement.of(metrics.LATENCY, [0.3, 0.5], notes=TURNS),
)


def test_a_batched_run_says_what_is_needed():
    (table,) = choose.tables([BATCHED], "utterances")
    assert [cell.text() for cell in table.rows[0].cells] == ["unavailable"]
    assert any("needs several utterances, one per call" in note for note in table.notes)


def test_cases_without_such_figures_are_named_below_the_others():
    found = choose.tables([CASCADE, BATCHED], "utterances")
    assert len(found) == 2
    assert all(len(table.rows) == len({row.labels for row in table.rows}) for table in found)
    assert all(any("batched" in note and "one per call" in note for note in table.notes) for table in found)
    assert not any("one per call" in note for table in choose.tables([CASCADE], "utterances") for note in table.notes)
