"""Tables of live cases: what each row says, what stands in place of a figure, and what the notes add."""

from dataclasses import replace

import pytest
import report_runs
from tests.live_records import case, delays, ratios, record, rounds

from speechmeter.analysis.estimate import estimate
from speechmeter.core import metrics
from speechmeter.core.types import Measurement
from speechmeter.report.choose import tables
from speechmeter.report.grids import protocol_note

NAMES = [f"u{number:02}" for number in range(60)]


def study(count=5, names=NAMES, **axes):
    """Two systems: the second answers 0.1 s later, and not at all in two utterances."""
    made = []
    for name, extra, lost in (("swift", 0.0, 0), ("late", 0.1, 2)):
        of = case(name, **axes)
        heard = {one: [None] if place < lost else [0.4 + extra + place / 1000] for place, one in enumerate(names)}
        found = (
            delays(heard),
            delays({one: [0.2] for one in names}, metrics.WORD_LAG),
            ratios(dict.fromkeys(names, (1.0, 4.0)), metrics.PARTIAL_CHURN),
            ratios(dict.fromkeys(names, (1.0, 1.0)), metrics.LIVE_COMPLETENESS),
            ratios(dict.fromkeys(names, (1.0, 8.0)), metrics.LIVE_WER),
            Measurement.absent(metrics.FIRST_PARTIAL_FROM_ONSET, "no onset in the data"),
        )
        more = {"warnings": ("client-bound: sends were late by 3 ms",)} if name == "late" else {}
        made += [
            record(of, number, names, *found, Measurement.of(metrics.CLIENT_SLIP_P99, [0.001 * (number + 1)]), **more)
            for number in range(count)
        ]
    return made


def cells(table, row):
    return dict(zip(table.columns, (cell.text() for cell in table.rows[row].cells), strict=True))


def test_a_live_run_opens_with_delays_and_texts_of_each_system():
    records = study()
    delays_table, texts = tables(records, None)
    assert [row.labels for row in delays_table.rows] == [("swift", "100 ms", "1"), ("late", "100 ms", "1")]
    swift, late = cells(delays_table, 0), cells(delays_table, 1)
    assert swift["final delay p50"].startswith("429 ms [")
    assert late["final delay p95"].startswith("558 ms [")
    assert swift["first text p50"] == "unavailable"
    assert swift["late sends p99"] == "5.00 ms"  # the worst round
    assert cells(texts, 0)["rewritten words"].startswith("0.250 [")
    assert cells(texts, 0)["live WER"].startswith("12.5 % [")
    assert cells(texts, 0)["− offline WER"] == "unavailable"
    notes = "\n".join([*delays_table.notes, *texts.notes])
    assert "swift, late: unavailable: no onset in the data" in notes
    assert "the run has no offline case of this system" in notes
    assert "95 % interval over utterances and rounds" in notes
    assert "an answer that did not come within 30 s" in notes
    assert sum("client-bound" in note for note in texts.notes) == 1  # five rounds, one line


def test_few_rounds_and_few_utterances_are_said():
    three = "\n".join(tables(study(3), "live")[0].notes)
    assert "over utterances only, because there are fewer than 5 rounds" in three
    (table, _) = tables(study(5, NAMES[:9]), "live")
    assert cells(table, 0)["final delay p95"] == "too few (n=9)"
    assert cells(table, 0)["final delay p50"] == "404 ms"
    assert "no interval: fewer than 10 distinct utterances." in table.notes


def test_chunks_and_streams_are_columns_and_the_pace_is_named_where_it_varies():
    records = [*study(1, streams=4, chunk=0.02), *study(1, pace="fast")]
    found = [row.labels for row in tables(records, "live")[0].rows]
    assert found[0] == ("swift · realtime", "20.0 ms", "4")
    assert found[2] == ("swift · fast", "100 ms", "1")


def test_one_metric_shows_the_percentiles_that_its_utterances_support():
    records = study()
    (table,) = tables(records, "final_delay")
    assert table.columns == ("p50", "p90", "p95", "utterances", "rounds", "no answer")
    assert cells(table, 1)["no answer"] == "10"
    assert table.rows[0].cells[0].estimate == estimate(records[:5], metrics.FINAL_DELAY)
    (worst,) = tables(records, "final_delay", "max")
    assert cells(worst, 1)["max"] == "> 30 s"
    (mean,) = tables(records, "final_delay", "mean-sd")
    assert (cells(mean, 0)["mean-sd"], cells(mean, 1)["mean-sd"]) == ("430 ms ± 17.3 ms", "unavailable")
    assert any("answers are missing" in note for note in mean.notes)


def test_conversations_without_an_answer_are_counted_where_they_are_in_a_ratio():
    three = replace(study()[0].measurements[0], values=(0.0, 0.0, 0.0, *[1.0] * 57))
    held = [replace(one, measurements=(three, *one.measurements[1:])) for one in study()]
    for metric in ("live_completeness", "live_wer"):
        assert cells(tables(held, metric)[0], 0)["no answer"] == "15"  # 3 in each of 5 rounds
    assert cells(tables(held, "final_delay")[0], 0)["no answer"] == "0"


def test_a_figure_of_an_earlier_definition_is_named_with_the_way_to_make_it_anew():
    old = [replace(one, measurements=tuple(replace(m, metric=m.metric.replace("live_wer.v2", "live_wer.v1"))
           for m in one.measurements)) for one in study()]  # fmt: skip
    (_, texts) = tables(old, "live")
    assert (
        "live WER: computed with an earlier definition; to compute it again: speechmeter recompute RUN" in texts.notes
    )
    assert not any("earlier definition" in note for table in tables(study(), "live") for note in table.notes)


def test_words_with_a_lag_stand_beside_the_lag():
    assert "words with a lag" in tables(study(), "word_lag")[0].columns
    assert "early endpoints" in tables(study(), "endpoint_delay")[0].columns


def test_partly_withheld_values_are_counted_by_reason():
    names = NAMES[:20]
    some = delays({name: [0.1] for name in names}, metrics.WORD_LAG)
    notes = {**some.notes, "withheld": ["a word was not sent (2 of 20)"]}
    held = Measurement.of(metrics.WORD_LAG, some.values, notes=notes)
    (table,) = tables([record(case(), number, names, held) for number in range(2)], "word_lag")
    assert "no word lag, a (4 of 40): a word was not sent." in table.notes


def test_a_live_run_has_no_other_figures_to_open_with():
    records = rounds(case(), [{name: [0.5] for name in NAMES}])
    assert [table.title for table in tables(records, None)] == ["live: delays", "live: texts"]


@pytest.mark.parametrize("format", ["markdown", "csv", "latex", "json"])
def test_every_format_shows_the_same_digits(format):
    from speechmeter.report.text import formatted

    records = study()
    text = formatted(tables(records, "live"), format)
    assert tables(records, "live")[0].rows[0].cells[0].text() in text.replace("{[}", "[").replace("{]}", "]")


def test_the_front_is_that_of_wer_and_the_tail_of_delays(tmp_path):
    _, texts = tables(report_runs.live(tmp_path), "live")
    assert [cells(texts, row)["on the front"] for row in (0, 1)] == ["yes", "no: prompt"]
    assert any("the Pareto front of live WER and final delay p50" in note for note in texts.notes)


def test_what_is_said_of_a_live_case_has_no_empty_part():
    records = study()
    note = protocol_note(records[0].case, [records[:5]])
    assert note.startswith("5 rounds; boundary ")
