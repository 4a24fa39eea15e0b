"""`basic` over scripts: what joins letters does not part words, and what is not seen is not counted."""

import unicodedata

import pytest

from speechmeter.core.normalise import normaliser
from speechmeter.core.quality import NORMALISERS, VERSIONS

old, new = normaliser("basic.v1"), normaliser("basic.v2")
WORDS = {
    "Persian, U+200C": "می\u200cروم", "Malayalam, U+200D": "അവന്\u200d", "Hindi, U+200D": "क्\u200dष",
    "Kannada, U+200C": "ರ್\u200cಕ", "Sinhala, U+200D": "ශ්\u200dරී", "soft hyphen": "co\u00adoperate",
    "word joiner": "co\u2060operate", "byte order mark": "\ufeffword", "Arabic mark": "\u061cكلمة",
    "Hebrew mark": "שלום\u200f", "Mongolian selector": "\u182d\u180b\u1820", "grapheme joiner": "a\u034fb",
}  # fmt: skip


@pytest.mark.parametrize("word", WORDS.values(), ids=WORDS)
def test_what_is_invisible_does_not_split_a_word(word):
    assert len(new(word).split()) == 1
    assert new(word) == new(
        "".join(char for char in word if unicodedata.category(char) != "Cf" and char not in "\u034f\u180b")
    )


@pytest.mark.parametrize("word", [word for word in WORDS.values() if unicodedata.category(word[2]) == "Cf"][:3])
def test_the_first_version_still_splits_it_for_records_that_name_it(word):
    assert len(old(word).split()) == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ภาษา\u200bไทย", ["ภาษา", "ไทย"]),  # the space without width parts words
        ("हिन्दी भाषा।", ["हिन्दी", "भाषा"]),  # marks stay with their letters
        ("தமிழ்", ["தமிழ்"]),
        ("cafe\u0301", ["café"]),
        ("a\u0308\u0323", ["ạ̈"]),
        ("I ❤\ufe0f you", ["i", "you"]),  # a selector that lost its symbol is no word
        ("1\ufe0f\u20e3 two", ["1", "two"]),
        ("don´t", ["don", "t"]),  # which NFKC writes as a space and a mark
        ("◌\u0301 x", ["x"]),
        ("👩\u200d💻 x", ["x"]),
        ("İstanbul", ["i̇stanbul"]),
        ("a\x00b\x85c\u2028d", ["a", "b", "c", "d"]),
        ("\u0378\ue000", ["\u0378\ue000"]),  # not known to this Python, or to nobody
    ],
)
def test_words_of_a_text(text, words):
    assert new(text).split() == words


@pytest.mark.parametrize("text", [*WORDS.values(), "İ", "ﷺ", "½ ﬁ Å", "ϓ", "a\u0345\u0301", "\u0344x"])
def test_a_normalised_text_is_normal(text):
    assert new(new(text)) == new(text)


def test_on_plain_text_both_versions_agree():
    for text in ("Hello, World!", "Grüße aus Köln – 3,5 km", "语音识别", "Привет, мир", "don't stop", "नमस्ते दुनिया"):
        assert old(text) == new(text)


def test_every_version_is_there_and_names_mean_the_newest():
    for id_ in VERSIONS:
        assert normaliser(id_)("A  b") in ("a b", "A b")
    assert set(NORMALISERS.values()) <= set(VERSIONS)
    assert normaliser(NORMALISERS["english"])("co\u00adoperate, won\u200bt") == "cooperate won t"
    assert normaliser("english.v1")("co\u00adoperate") == "co operate"
