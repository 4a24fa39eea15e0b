"""Counts against the scorers of the field on the same text, and against counts made by hand."""

import jiwer
import pytest
from conftest import make_case, make_record
from sacrebleu.metrics import BLEU, CHRF

from speechmeter.analysis.estimate import estimate
from speechmeter.core import metrics
from speechmeter.core.normalise import normaliser
from speechmeter.meters import quality
from speechmeter.meters.quality import Answer, missing, score

REFERENCES = [
    "The first ferry came in, quietly.",
    "Seven passengers walked down the ramp!",
    "A small dog waited beside the ticket office",
    "Someone laughed",
    "It's twenty minutes past six",
]
OUTPUTS = [
    "the first fairy came in quietly",
    "7 passengers walk down a ramp",
    "",
    "someone has laughed out loud",
    "it is 20 minutes past six",
]
ANSWERS = [Answer(name=str(i), reference=r, output=o) for i, (r, o) in enumerate(zip(REFERENCES, OUTPUTS, strict=True))]


def figure(metric, answers=ANSWERS, scores=("wer", "cer", "bleu", "chrf"), rule="basic.v1"):
    return estimate([make_record(make_case(), *score(answers, scores, rule))], metric)


@pytest.mark.parametrize("rule", ["none.v1", "basic.v1", "english.v1"])
def test_error_rates_are_those_of_jiwer_on_the_same_normalised_text(rule):
    sides = [[normaliser(rule)(text) for text in side] for side in (REFERENCES, OUTPUTS)]
    assert figure(metrics.WER, rule=rule).value == pytest.approx(100 * jiwer.wer(*sides))
    assert figure(metrics.CER, rule=rule).value == pytest.approx(100 * jiwer.cer(*sides))


def test_translation_scores_are_those_of_sacrebleu_on_the_text_as_it_is():
    assert figure(metrics.BLEU).value == pytest.approx(BLEU().corpus_score(OUTPUTS, [REFERENCES]).score)
    assert figure(metrics.CHRF).value == pytest.approx(CHRF().corpus_score(OUTPUTS, [REFERENCES]).score)


@pytest.mark.parametrize("outputs", [[""], ["nothing alike"], ["It's"], ["It's twenty past six"], [REFERENCES[4]]])
def test_short_and_empty_outputs_score_as_sacrebleu_says(outputs):
    answers = [Answer(name="x", reference=REFERENCES[4], output=outputs[0])]
    references = [[REFERENCES[4]]]
    assert figure(metrics.BLEU, answers).value == pytest.approx(BLEU().corpus_score(outputs, references).score)
    assert figure(metrics.CHRF, answers).value == pytest.approx(CHRF().corpus_score(outputs, references).score)


def test_an_empty_output_is_all_words_deleted_and_lowers_completeness():
    counts = {m.metric: m for m in score(ANSWERS, ("wer",), "basic.v1")}
    assert counts["word_errors.v1"].values[2] == counts["reference_words.v1"].values[2] == 8
    assert counts["answered.v1"].values == (1, 1, 0, 1, 1)
    assert figure(metrics.COMPLETENESS).value == 80
    assert figure(metrics.WER, [Answer(name="x", reference="a b", output=" ")]).value == 100


def test_words_where_the_reference_has_none_are_errors():
    answers = [Answer(name="a", reference="", output="two words"), Answer(name="b", reference="one", output="one")]
    assert figure(metrics.WER, answers).value == 200
    assert figure(metrics.WER, answers[:1]) is None


def test_what_was_scored_and_how_is_in_the_notes():
    found = {m.metric: m.notes for m in score(ANSWERS, ("wer", "bleu"), "english.v1")}
    assert found["answered.v1"]["utterances"] == ["0", "1", "2", "3", "4"]
    assert found["word_errors.v1"]["normaliser"] == "english.v1"
    assert "tok:13a" in found["bleu_statistics.v1"]["signature"]
    assert set(found) == {"answered.v1", "word_errors.v1", "reference_words.v1", "bleu_statistics.v1"}


def test_a_missing_package_comes_with_the_way_to_get_it(monkeypatch):
    monkeypatch.setattr(quality, "find_spec", lambda name: None if name == "sacrebleu" else object())
    assert missing(["wer", "cer"]) is None
    assert missing(["wer", "bleu"]) == "sacrebleu is not installed: pip install 'speechmeter[quality]'"
