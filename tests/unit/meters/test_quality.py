"""The meter on sessions: one pass for outputs and scores, and a reason for whatever cannot be scored."""

import pytest
from conftest import make_case

from speechmeter.core.outputs import Keep, Output, output_of
from speechmeter.core.protocols import Fed, Installed, Prepared
from speechmeter.core.types import Batch, Speech, Stage
from speechmeter.engine.measure import measure
from speechmeter.meters.latency import LatencyMeter
from speechmeter.meters.quality import QualityMeter, answers_of


class Feed:
    axes = ()
    options = ()

    def __init__(self, *batches):
        self._batches = batches

    def check(self, case):
        return None

    def feeds(self, case):
        return Fed()

    def batches(self, case):
        yield from self._batches


class Recogniser:
    summary, axes, options, takes, runs_code = "", (), (), (), False

    def __init__(self, fn):
        self.calls = []
        self._fn = fn

    def installed(self):
        return Installed(version="1")

    def check(self, case):
        return None

    def unavailable(self, case):
        return None

    def prepare(self, case, device):
        return Prepared(stages=(Stage(name="model", fn=self._call),))

    def _call(self, batch):
        self.calls.append(batch.ids)
        return self._fn(batch)


def heard(name, text, **fields):
    return Batch(data=text, items=1, ids=(name,), audio_s=2.0, references=(text,), **fields)


BATCHES = (heard("a", "one two three"), heard("b", "four five"), heard("c", "six"))


def found(subject, *meters, batches=BATCHES, folder=None, **case):
    made = make_case(meters=tuple(m.name for m in meters), **case)
    outcome = measure(made, subject, Feed(*batches), meters, keep=Keep(folder=folder))
    assert outcome.status == "ok", outcome.reason
    return made, {m.metric: m for m in outcome.measurements if m.scope == "total"}


def test_one_pass_gives_outputs_and_scores(tmp_path):
    subject = Recogniser(lambda batch: [batch.data.replace("five", "nine")])
    case, readings = found(subject, QualityMeter(), folder=tmp_path)
    assert subject.calls == [("a",), ("b",), ("c",)]  # the first call is the first of the pass
    assert readings["word_errors.v1"].values == (0, 1, 0)
    assert readings["reference_words.v1"].values == (3, 2, 1)
    assert readings["answered.v1"].notes["utterances"] == ["a", "b", "c"]
    assert (tmp_path / case.id / "text.tsv").read_text() == "a\tone two three\nb\tfour nine\nc\tsix\n"
    assert not (tmp_path / case.id / "utterances.jsonl").exists()  # nothing was timed


def test_loading_inside_the_clock_does_not_shift_the_outputs():
    subject = Recogniser(lambda batch: [batch.data])
    _, readings = found(subject, LatencyMeter(), QualityMeter(), boundary="+load")
    assert readings["word_errors.v1"].values == (0, 0, 0)


@pytest.mark.parametrize("boundary", ["+load", "+features"])
def test_timed_single_utterances_become_a_file(boundary, tmp_path):
    import json

    subject = Recogniser(lambda batch: [batch.data.upper()])
    case, readings = found(subject, LatencyMeter(), folder=tmp_path, boundary=boundary)
    lines = [json.loads(line) for line in (tmp_path / case.id / "utterances.jsonl").read_text().splitlines()]
    assert [line["audio_filepath"] for line in lines] == ["a", "b", "c"]
    assert [(line["text"], line["pred_text"]) for line in lines][1] == ("four five", "FOUR FIVE")
    assert {line["duration"] for line in lines} == {2.0}
    own = sorted(readings["latency.v1"].values[1::3])
    assert lines[1]["time"] == pytest.approx((own[(len(own) - 1) // 2] + own[len(own) // 2]) / 2)


def test_utterances_are_not_written_where_times_and_texts_cannot_be_matched(tmp_path):
    two = (Batch(data="", items=2, ids=("a", "b"), audio_s=4.0, references=("x", "y")),)
    subject = Recogniser(lambda batch: [batch.data] * batch.items)
    case, _ = found(subject, LatencyMeter(), batches=two, folder=tmp_path)
    assert (tmp_path / case.id / "text.tsv").exists()
    assert not (tmp_path / case.id / "utterances.jsonl").exists()


@pytest.mark.parametrize(
    ("output", "batches", "reason"),
    [
        (lambda batch: [[1, 2, 3]], BATCHES, "token ids, not text"),
        (lambda batch: [Speech(samples=[0.0], rate=1)], BATCHES, "sound, not text"),
        (lambda batch: None, BATCHES, "output is not text"),
        (lambda batch: ["x"], (Batch(data="", items=1),), "has no references to score against"),
        (lambda batch: ["x"], (Batch(data="", items=2, references=("a", "b")),), "1 texts for 2 items"),
    ],
)
def test_what_cannot_be_scored_is_unavailable_with_the_reason(output, batches, reason):
    _, readings = found(Recogniser(output), QualityMeter(), batches=batches)
    assert reason in readings["answered.v1"].unavailable
    assert "word_errors.v1" not in readings


def test_silence_after_words_is_an_utterance_without_an_answer():
    outputs = [output_of(["one two three"]), Output(), output_of([""])]
    answers = answers_of(BATCHES, outputs)
    assert [answer.output for answer in answers] == ["one two three", "", ""]


def test_pieces_of_one_utterance_are_joined():
    assert answers_of(BATCHES[:1], [output_of(["one two", "three"])])[0].output == "one two three"


def imported(path, name="m", **axes):
    return make_case(name, protocol={"quality": {"import": str(path)}}, **axes)


def test_imported_scores_are_marked_and_call_nothing(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("model,wer,wer_low,wer_high,bleu\nfake,5,4,6,30\n")
    subject = Recogniser(lambda batch: ["x"])
    _, readings = found(subject, QualityMeter(), protocol={"quality": {"import": str(path)}}, batches=BATCHES[:1])
    assert readings["wer.v1"].values == (5.0,)
    assert (readings["wer.v1"].source, readings["wer.v1"].notes["low"]) == ("imported", 4.0)
    assert readings["bleu.v1"].values == (30.0,)
    assert "answered.v1" not in readings


def test_a_model_without_an_imported_row_is_unavailable(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("model,threads,wer\nm,2,5\n")
    meter = QualityMeter()
    assert meter.unavailable(imported(path, threads=2)) is None
    assert "has no row for m for this input size and batch" in meter.unavailable(imported(path, threads=1))
    assert "has no row for other" in meter.unavailable(imported(path, "other", threads=2))
    assert "cannot be read" in meter.unavailable(imported(tmp_path / "gone.csv"))


def test_utterances_without_a_reference_are_counted():
    silent = [Batch(data="x", items=1, ids=(f"n{place}",), audio_s=1.0) for place in range(9)]
    _, readings = found(Recogniser(lambda batch: [batch.data]), QualityMeter(), batches=(BATCHES[0], *silent))
    assert readings["answered.v1"].notes["utterances"] == ["a"]
    assert readings["answered.v1"].notes["notes"] == ["9 of 10 utterances are not scored: they have no reference"]
    _, complete = found(Recogniser(lambda batch: [batch.data]), QualityMeter())
    assert "notes" not in complete["answered.v1"].notes


def test_a_batch_that_lacks_a_reference_is_counted_as_a_whole():
    pair = Batch(data="x y", items=2, ids=("p", "q"), audio_s=1.0)
    _, readings = found(Recogniser(lambda batch: batch.data.split()[: batch.items]), QualityMeter(),
                        batches=(heard("a", "one"), pair))  # fmt: skip
    (told,) = readings["answered.v1"].notes["notes"]
    assert told == "2 of 3 utterances are not scored: a reference is missing in their batch"
