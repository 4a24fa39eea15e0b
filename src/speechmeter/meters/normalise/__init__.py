"""Text made comparable before words are counted. Each normaliser has an id with a version, stored with the figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from speechmeter.core.quality import NORMALISERS
from speechmeter.meters.normalise.basic import basic
from speechmeter.meters.normalise.english import english


@dataclass(frozen=True, kw_only=True)
class Normaliser:
    """A rule for text under an id with its version."""

    id: str
    apply: Callable[[str], str]


def _as_it_is(text: str) -> str:
    return " ".join(text.split())


_RULES: dict[str, Callable[[str], str]] = {
    NORMALISERS["none"]: _as_it_is,
    NORMALISERS["basic"]: basic,
    NORMALISERS["english"]: english,
}


def normaliser(id: str) -> Normaliser:
    """The normaliser of an id such as `english.v1`. Raises KeyError for one that this version does not have."""
    return Normaliser(id=id, apply=_RULES[id])
