"""What a live study found, on example runs whose figures are known."""

from pathlib import Path

from speechmeter.analysis.answers import answers
from speechmeter.core import metrics
from speechmeter.report.labels import case_labels
from speechmeter.report.page.table import shown_metrics, table_data
from speechmeter.report.sources import read_sources
from speechmeter.report.studies import study_of

EXAMPLES = Path(__file__).parents[4] / "examples" / "runs"


def found(run):
    (source,) = read_sources([str(EXAMPLES / run)])
    return {answer.rule: answer for answer in answers(study_of(source))}


def test_the_most_streams_are_those_before_the_delay_grows():
    streams = found("live-streams")["streams"]
    assert (streams.figure.value, streams.limit.value, streams.names) == (4, 8, ("simulated",))


def test_the_delay_is_of_the_fewest_streams_and_of_speech_paced_as_it_is_spoken():
    delay = found("live-streams")["delay"]
    assert delay.figure.metric == metrics.WORD_LAG and delay.rounds[0].case.axes.streams == 1
    paced = found("live-paces")["delay"]
    assert paced.figure.metric == metrics.FINAL_DELAY and paced.names == ("simulated",)
    assert paced.rounds[0].case.axes.pace == "realtime" and found("live-paces")["live errors"].figure.value == 0


def test_the_first_sound_is_of_texts_that_come_at_once():
    delay = found("speech-out")["delay"]
    assert (delay.figure.metric, delay.names, delay.of) == (metrics.FIRST_SOUND, ("espeak",), 2)
    assert delay.rounds[0].case.axes.text_pace is None and delay.where == "text at once"


def test_paces_of_texts_tell_the_rows_of_a_summary_apart():
    (source,) = read_sources([str(EXAMPLES / "speech-out")])
    shown = shown_metrics(source.records)
    table = table_data(source, shown)
    assert [labels for labels, _ in table["rows"]] == [
        ["piper", "at once"], ["espeak", "at once"], ["piper", "20 tokens/s"], ["espeak", "20 tokens/s"]
    ]  # fmt: skip
    assert [column["title"] for column in table["columns"][:3]] == ["first sound", "speech RTF", "round-trip WER"]
    assert set(case_labels(source.records).values()) == {
        "piper · cpu", "espeak · cpu", "piper · cpu · 20 tokens/s", "espeak · cpu · 20 tokens/s"
    }  # fmt: skip
