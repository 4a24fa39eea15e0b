"""How long a generated text gets."""

import pytest

from speechmeter.core.errors import SubjectError
from speechmeter.subjects.common import PINNED_TOKENS
from speechmeter.subjects.transformers.lengths import check_lengths, lengths_of


@pytest.mark.parametrize(
    ("axes", "tokens"),
    [
        ({}, PINNED_TOKENS),
        ({"max_new_tokens": 7}, 7),
        ({"min_new_tokens": 3, "max_new_tokens": 7}, 7),
        ({"min_new_tokens": 3}, 3),
        ({"max_len_b": 5}, 5),
        ({"max_len_b": 0}, 1),
    ],
)
def test_random_weights_make_exactly_the_asked_number(axes, tokens):
    lengths = lengths_of(axes, random=True)
    assert lengths.bounds() == {"min_new_tokens": tokens, "max_new_tokens": tokens}
    assert lengths.fixed == tokens
    assert lengths.notes() == [f"output length fixed at {tokens} tokens"]


def test_real_weights_stop_by_themselves_within_the_bounds():
    assert lengths_of({}, random=False).bounds() == {}
    assert lengths_of({"min_new_tokens": 2, "max_len_b": 9}, random=False).bounds() == {
        "min_new_tokens": 2,
        "max_new_tokens": 9,
    }
    assert lengths_of({"max_new_tokens": 9}, random=False).fixed is None


def test_a_length_may_follow_the_source():
    lengths = lengths_of({"max_len_a": 0.5, "max_len_b": 3}, random=True)
    assert lengths.bounds(25) == {"min_new_tokens": 15, "max_new_tokens": 15}
    assert lengths.fixed is None
    assert lengths.notes() == ["output length fixed at 0.5 × source length + 3 tokens"]
    assert lengths_of({"max_len_a": 0.1}, random=False).bounds(2) == {"max_new_tokens": 1}


@pytest.mark.parametrize(
    "axes",
    [
        {"max_new_tokens": 5, "max_len_a": 1.0},
        {"max_new_tokens": 5, "max_len_b": 1},
        {"max_new_tokens": 5, "min_new_tokens": 6},
    ],
)
def test_axes_that_contradict_each_other_are_refused(axes):
    with pytest.raises(SubjectError, match="max_new_tokens"):
        check_lengths(axes)


def test_axes_that_fit_together_are_taken():
    check_lengths({"max_new_tokens": 5, "min_new_tokens": 5, "max_len_a": None})
