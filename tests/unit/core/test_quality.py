"""Scores from elsewhere: percent or fractions without a guess, cells by axes, and every fault in one line."""

import pytest

from speechmeter.core.errors import InputError
from speechmeter.core.quality import Score, read_scores, score_for


@pytest.fixture
def scores(tmp_path):
    def read(text):
        path = tmp_path / "scores.csv"
        path.write_text(text)
        return read_scores(path)

    return read


def test_percent_and_fractions_give_the_same_figure(scores):
    (percent,) = scores("model,wer,wer_low,wer_high\nsmall,4.5,4.25,5\n")
    (fraction,) = scores("Model, wer_fraction ,wer_fraction_low,wer_fraction_high\nsmall,0.045,0.0425,0.05\n")
    assert percent.scores["wer"] == Score(value=4.5, low=4.25, high=5.0)
    assert fraction.scores["wer"].value == pytest.approx(4.5)
    assert (fraction.scores["wer"].low, fraction.scores["wer"].high) == pytest.approx((4.25, 5.0))


def test_a_column_that_may_be_either_is_refused_unless_it_says_which(scores):
    with pytest.raises(InputError, match="rename it to wer_percent or wer_fraction"):
        scores("model,wer\na,0.05\nb,0.9\n")
    assert scores("model,wer_percent\na,0.05\n")[0].scores["wer"].value == 0.05
    assert scores("model,wer\na,0.05\nb,1.9\n")[0].scores["wer"].value == 0.05
    with pytest.raises(InputError, match="give values between 0 and 100"):
        scores("model,bleu\na,0.31\n")


def test_the_row_that_names_most_axes_is_taken(scores):
    rows = scores("model,beam,dtype,wer\nm,,,9\nm,5,,7\nm,5,float16,8\nother,5,,1.5\n")
    assert score_for(rows, "m", {"beam": 1, "dtype": "float32"}).scores["wer"].value == 9
    assert score_for(rows, "m", {"beam": 5, "dtype": "float32"}).scores["wer"].value == 7
    assert score_for(rows, "m", {"beam": 5, "dtype": "float16"}).scores["wer"].value == 8
    assert score_for(rows, "other", {"beam": 1}) is None
    assert score_for(rows, "nobody", {"beam": 5}) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no column `model`"),
        ("name,wer\na,5\n", "no column `model`"),
        ("model,speed\na,5\n", "no column with a score"),
        ("model,wer\n", "has no rows"),
        ("model,wer\na,five\n", "scores.csv:2: wer takes a number from 0 on, not 'five'"),
        ("model,wer\na,5%\n", "write the number without a % sign"),
        ("model,wer\na,-5\n", "from 0 on"),
        (
            "model,wer_fraction\na,16.3\n",
            "wer_fraction 16.3 means 1630 %, which is too high; call the column wer_percent",
        ),
        ("model,wer\na,nan\n", "from 0 on"),
        ("model,wer\na,5,6\n", "scores.csv:2: the row has 3 cells, but the header has 2 columns"),
        ("model,wer\na,\n", "needs a model and at least one score"),
        ("model,wer\na,5\na,6\n", "scores.csv:3: 'a' appears twice"),
        ("model,wer,wer\na,5,6\n", "column 'wer' appears twice"),
        ("model,wer,wer_fraction\na,5,0.05\n", "only one column `wer` is allowed"),
        ("model,bleu_fraction\na,0.3\n", "only one column `bleu` is allowed"),
        ("model,wer,cer_low\na,5,1\n", "the interval column cer_low needs a column cer"),
        ("model,wer,wer_low\na,5,4\n", "one end of its interval"),
        ("model,wer,wer_low,wer_high\na,5,6,7\n", "outside its interval"),
        ("model,bleu\na,130\n", "must be at most 100"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_one_line(text, reason, scores):
    with pytest.raises(InputError) as refusal:
        scores(text)
    assert reason in str(refusal.value)
    assert "\n" not in str(refusal.value)
