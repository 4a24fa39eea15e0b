"""`basic`, for any language: lower case, punctuation and symbols to spaces, single spaces.

History: `basic.v1` made a space of every invisible character, so that joiners (U+200C, U+200D) split words of Persian
and Indic scripts, and a soft hyphen split any word; it left combining marks that had lost their letter as words of
their own. `basic.v2` drops what is invisible, and marks without a letter.
"""

from __future__ import annotations

import re
import unicodedata

_SPACES = dict.fromkeys((0x200B, 0x2028, 0x2029), " ")
"""The space without width stands between words of Thai, Khmer and Burmese."""
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Code points with the property Default_Ignorable_Code_Point of Unicode 15, which `unicodedata` does not tell."""


def basic_v1(text: str) -> str:
    """Letters, marks and digits alone, in lower case, with one space between words."""
    lowered = unicodedata.normalize("NFKC", text).lower()
    return " ".join("".join(" " if unicodedata.category(char)[0] in "PSZC" else char for char in lowered).split())


def basic(text: str) -> str:
    """Letters with their marks and digits alone, in lower case, with one space between words.

    What is invisible goes, and the letters beside it stay together. A code point that this Python does not know is a
    letter, so that a figure does not depend on the version of Python.
    """
    composed = unicodedata.normalize("NFKC", visible(text))
    lowered = unicodedata.normalize("NFKC", composed.lower())
    kept: list[str] = []
    for char in lowered:
        kind = unicodedata.category(char)
        if kind[0] in "PSZ" or kind in ("Cc", "Cs"):
            kept.append(" ")
        elif kind[0] != "M" or (kind != "Me" and kept and kept[-1] != " "):
            kept.append(char)
    return " ".join("".join(kept).split())


def visible(text: str) -> str:
    """The text without characters that are never seen; those that part words are spaces."""
    return _IGNORABLE.sub("", text.translate(_SPACES))
