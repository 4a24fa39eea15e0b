"""Numbers in words as digits, for English: `twenty one` → `21`, `nineteen eighty four` → `1984`, `third` → `3rd`.

Neighbouring words make one number where English reads them as one. Digits said one by one stay apart, and a
pair of numbers from 10 to 99 is read as a year: `twenty twenty four` → `2024`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

_UNITS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
}  # fmt: skip
_TEENS = {
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19,
}  # fmt: skip
_TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_SMALL = {**_UNITS, **_TEENS, **_TENS}
_HUNDRED = "hundred"
_LONGEST = 15
"""Digits of the longest number that is read as one."""
_IRREGULAR_ORDINALS = {
    "first": "one", "second": "two", "third": "three", "fifth": "five", "eighth": "eight", "ninth": "nine",
    "twelfth": "twelve",
}  # fmt: skip
_REGULAR_ORDINALS = {
    **{f"{word}th": word for word in (*_UNITS, *_TEENS, _HUNDRED, *_SCALES)},
    **{f"{word.removesuffix('y')}ieth": word for word in _TENS},
}
_ORDINALS = {**_REGULAR_ORDINALS, **_IRREGULAR_ORDINALS}


def in_digits(words: Sequence[str]) -> list[str]:
    """The words with every number in digits."""
    found: list[str] = []
    index = 0
    while index < len(words):
        taken, text = _number_at(words, index)
        found.append(text if taken else words[index])
        index += max(taken, 1)
    return found


def _number_at(words: Sequence[str], start: int) -> tuple[int, str]:
    """(words taken, digits) of the number that begins here; none taken where none does."""
    taken, value, ordinal = _whole(words, start)
    if not taken:
        return 0, ""
    if ordinal:
        return taken, f"{value}{_suffix(value)}"
    decimals = _decimals(words, start + taken)
    if decimals:
        scale = _SCALES.get(_word(words, start + taken + 1 + decimals[0]))
        if scale is None:
            return taken + 1 + decimals[0], f"{value}.{decimals[1]}"
        exact = value * scale + int(decimals[1]) * scale // 10 ** len(decimals[1])
        return taken + 2 + decimals[0], str(exact)
    if 10 <= value <= 99 and not words[start].isdigit():
        second, low, is_ordinal = _whole(words, start + taken)
        if second and not is_ordinal and 10 <= low <= 99:
            return taken + second, f"{value}{low}"
    # what was written with leading zeros stays so
    return taken, words[start] if taken == 1 and words[start].isdigit() else str(value)


def _whole(words: Sequence[str], start: int) -> tuple[int, int, bool]:
    """(words taken, value, whether it is an ordinal) of a whole number: groups below a thousand, scales falling."""
    total, at, end, least = 0, start, start, inf
    while True:
        taken, value, ordinal = _below_thousand(words, at)
        name = _word(words, at + taken)
        scale = _SCALES.get(_ORDINALS.get(name, name), 0)
        if not taken or scale >= least or (total and value >= 1000):
            return end - start, total, False
        if ordinal or not scale:
            return at + taken - start, total + value, ordinal
        total, end, least = total + value * scale, at + taken + 1, scale
        if name in _ORDINALS:
            return end - start, total, True
        at = end + 1 if _word(words, end) == "and" and _below_hundred(words, end + 1)[0] else end


def _below_thousand(words: Sequence[str], start: int) -> tuple[int, int, bool]:
    """(words taken, value, whether it is an ordinal): `a hundred and five`, `forty two`, `2`, `seventh`."""
    word, after = _word(words, start), _word(words, start + 1)
    if _is_written(word):
        hundreds = after == _HUNDRED
        return (2, int(word) * 100, False) if hundreds else (1, int(word), False)
    if word == "a" and after in (_HUNDRED, *_SCALES):
        return _hundreds(words, start, 1) if after == _HUNDRED else (1, 1, False)
    if (word in _UNITS or word in _TEENS) and after == _HUNDRED:
        return _hundreds(words, start, _SMALL[word])
    if (word in _UNITS or word in _TEENS) and after == f"{_HUNDRED}th":
        return 2, _SMALL[word] * 100, True
    return _below_hundred(words, start)


def _hundreds(words: Sequence[str], start: int, count: int) -> tuple[int, int, bool]:
    skipped = 1 if _word(words, start + 2) == "and" else 0
    taken, rest, ordinal = _below_hundred(words, start + 2 + skipped)
    if not taken:
        return 2, count * 100, False
    return 2 + skipped + taken, count * 100 + rest, ordinal


def _below_hundred(words: Sequence[str], start: int) -> tuple[int, int, bool]:
    word, after = _word(words, start), _word(words, start + 1)
    if word in _TENS:
        unit = _UNITS.get(after) or _UNITS.get(_ORDINALS.get(after, ""))
        return (2, _TENS[word] + unit, after in _ORDINALS) if unit else (1, _TENS[word], False)
    if word in _SMALL:
        return 1, _SMALL[word], False
    if _ORDINALS.get(word) in _SMALL:
        return 1, _SMALL[_ORDINALS[word]], True
    return 0, 0, False


def _decimals(words: Sequence[str], start: int) -> tuple[int, str] | None:
    """(words taken, digits) after `point`: said digit by digit, or written."""
    if _word(words, start) != "point":
        return None
    taken, digits = 0, ""
    while (word := _word(words, start + 1 + taken)) in _UNITS or _is_written(word):
        digits += str(_UNITS[word]) if word in _UNITS else word
        taken += 1
    return (taken, digits) if 0 < len(digits) <= _LONGEST else None


def _is_written(word: str) -> bool:
    """Whether a word is a number in digits, and no endless row of them, as a model in a loop writes."""
    return word.isascii() and word.isdigit() and len(word) <= _LONGEST


def _word(words: Sequence[str], start: int) -> str:
    return words[start] if start < len(words) else ""


def _suffix(value: int) -> str:
    if value % 100 in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
