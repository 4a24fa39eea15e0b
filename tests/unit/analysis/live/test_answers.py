"""What a live study found, on example runs whose figures are known."""

from pathlib import Path

from speechmeter.analysis.answers import answers
from speechmeter.core import metrics
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
