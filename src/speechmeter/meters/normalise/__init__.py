"""Text made comparable before words are counted. Each normaliser has an id with a version, stored with the figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from speechmeter.meters.normalise.basic import basic, basic_v1
from speechmeter.meters.normalise.english import english, english_v1


@dataclass(frozen=True, kw_only=True)
class Normaliser:
    """A rule for text under an id with its version."""

    id: str
    apply: Callable[[str], str]


def _as_it_is(text: str) -> str:
    return " ".join(text.split())


_RULES: dict[str, Callable[[str], str]] = {
    "none.v1": _as_it_is,
    "basic.v1": basic_v1,
    "basic.v2": basic,
    "english.v1": english_v1,
    "english.v2": english,
}


def normaliser(id: str) -> Normaliser:
    """The normaliser of an id such as `english.v1`. Raises KeyError for one that this version does not have."""
    return Normaliser(id=id, apply=_RULES[id])
