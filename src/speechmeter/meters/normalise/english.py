"""`english`: `basic`, and one form for what English writes in several.

Contractions, titles, spelling and numbers get one form each; hesitations and tags such as [noise] are left out.
History: `english.v1` is made on `basic.v1`, `english.v2` on `basic.v2`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from speechmeter.meters.normalise.basic import basic, basic_v1, visible
from speechmeter.meters.normalise.numbers import in_digits
from speechmeter.meters.normalise.words import (
    CURRENCIES,
    ENDINGS,
    HESITATIONS,
    IRREGULAR,
    IS_AFTER,
    ONE_FORM,
    american,
)

_TAG = re.compile(r"\[[^\]]*\]|<[^>]*>")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_CLOCK = re.compile(r"\b(\d{2}):([1-5]\d)\b")
_MONEY = re.compile(r"([$£€])\s?(\d+(?:\.\d+)?)((?:\s(?:hundred|thousand|million|billion))?)")
_DECIMAL = re.compile(r"(?<=\d)\.(?=\d)")
_APOSTROPHES = str.maketrans(dict.fromkeys("’‘ʼ", "'"))
_WORD = re.compile(r"[\w']+")


def english_v1(text: str) -> str:
    """English text in one form, in lower case, with one space between words."""
    return _one_form(text, basic_v1)


def english(text: str) -> str:
    """The same, in which what is invisible does not split words."""
    return _one_form(visible(text), basic)


def _one_form(text: str, plain: Callable[[str], str]) -> str:
    lowered = text.lower().translate(_APOSTROPHES)
    spoken = _symbols(_TAG.sub(" ", lowered))
    words = plain(_WORD.sub(lambda found: _spelt_out(found[0]), spoken)).split()
    one_form = " ".join(ONE_FORM.get(word, american(word)) for word in words if word not in HESITATIONS)
    return " ".join(in_digits(one_form.replace("per cent", "percent").split()))


def _symbols(text: str) -> str:
    """Symbols as they are spoken; the point of a decimal too."""
    text = _CLOCK.sub(r"\1\2", _THOUSANDS.sub("", text))
    text = _MONEY.sub(lambda found: f"{found[2]}{found[3]} {CURRENCIES[found[1]]}", text)
    return _DECIMAL.sub(" point ", text).replace("%", " percent ").replace("&", " and ")


def _spelt_out(word: str) -> str:
    """A contraction in full; an apostrophe that is left over goes, and what it stood between joins."""
    if word in IRREGULAR:
        return IRREGULAR[word]
    word = word.strip("'")
    if word in IRREGULAR:
        return IRREGULAR[word]
    if word.endswith("'s") and word[:-2] in IS_AFTER:
        return f"{word[:-2]} is"
    for ending, meant in ENDINGS.items():
        if word.endswith(ending):
            return f"{word.removesuffix(ending)} {meant}"
    return word.replace("'", "")
