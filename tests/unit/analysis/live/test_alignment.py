"""Alignments against jiwer's numbers of errors, and against all alignments of short texts."""

from itertools import combinations

import jiwer
from hypothesis import given
from hypothesis import strategies as st

from speechmeter.analysis.live.alignment import align, common_prefix

WORDS = st.lists(st.sampled_from("abc"), max_size=6)


def exhaustive(reference: list[str], text: list[str]) -> tuple[int, int]:
    """(fewest errors, most correct words with these) over all ways to keep some words of both in order."""
    best = (len(reference) + len(text), 0)
    for count in range(min(len(reference), len(text)) + 1):
        for ours in combinations(range(len(reference)), count):
            for theirs in combinations(range(len(text)), count):
                hits = sum(reference[i] == text[j] for i, j in zip(ours, theirs, strict=True))
                errors = len(reference) + len(text) - count - hits
                best = min(best, (errors, -hits))
    return best[0], -best[1]


@given(WORDS, WORDS)
def test_errors_are_the_fewest_and_then_correct_words_the_most(reference: list[str], text: list[str]):
    found = align(reference, text)
    assert (found.errors, len(found.pairs)) == exhaustive(reference, text)
    assert all(reference[i] == text[j] for i, j in found.pairs)
    assert sorted(set(found.pairs)) == list(found.pairs)
    assert len({i for i, _ in found.pairs}) == len({j for _, j in found.pairs}) == len(found.pairs)


@given(st.lists(st.sampled_from(["one", "two", "über", "四"]), min_size=1), st.lists(st.sampled_from(["one", "two"])))
def test_errors_are_those_of_jiwer(reference: list[str], text: list[str]):
    theirs = jiwer.process_words(" ".join(reference), " ".join(text))
    assert align(reference, text).errors == theirs.substitutions + theirs.deletions + theirs.insertions


@given(WORDS, WORDS)
def test_an_open_end_takes_the_beginning_that_is_most_alike(reference: list[str], text: list[str]):
    found = align(reference, text, open_end=True)
    assert found.errors == min(exhaustive(reference[:end], text)[0] for end in range(len(reference) + 1))


def test_a_tie_goes_to_the_earlier_words():
    assert align(["the", "cat", "the"], ["the"]).pairs == ((0, 0),)
    assert align(["a", "the", "b", "the"], ["the"]).pairs == ((1, 0),)
    assert align(["go", "now", "go"], ["go"], open_end=True).pairs == ((0, 0),)


def test_a_common_prefix():
    assert [common_prefix("ab", text) for text in ("", "b", "a", "ac", "abc")] == [0, 0, 1, 1, 2]
