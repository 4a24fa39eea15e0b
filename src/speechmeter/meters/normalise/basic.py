"""`basic.v1`, for any language: lower case, punctuation and symbols to spaces, single spaces."""

from __future__ import annotations

import unicodedata


def basic(text: str) -> str:
    """Letters, marks and digits alone, in lower case, with one space between words."""
    lowered = unicodedata.normalize("NFKC", text).lower()
    return " ".join("".join(_kept(char) for char in lowered).split())


def _kept(char: str) -> str:
    return " " if unicodedata.category(char)[0] in "PSZC" else char
