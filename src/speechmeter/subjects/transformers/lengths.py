"""How long a generated text gets, as the axes of a case say: fixed, or relative to the encoder's output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from speechmeter.core.errors import SubjectError
from speechmeter.subjects.common import PINNED_TOKENS, pinned_note

_AT_LEAST = 1


@dataclass(frozen=True, kw_only=True)
class Lengths:
    """Bounds on new tokens. With `pinned` both are the same: random weights would stop by chance.

    `per_source` is the a of a × source length + b, where the source length is that of the encoder's output.
    """

    least: int | None
    most: int | None
    per_source: float | None = None
    beyond: int = 0
    pinned: bool = False

    @property
    def fixed(self) -> int | None:
        """The number of tokens, where it is the same for every input."""
        return self.most if self.pinned and self.per_source is None else None

    def bounds(self, source: int | None = None) -> dict[str, int]:
        """Keywords of `generate`; `source` is the source length, needed when there is an a."""
        most = self.most
        if self.per_source is not None and source is not None:
            most = max(_AT_LEAST, int(self.per_source * source + self.beyond))
        least = most if self.pinned else self.least
        named = {"min_new_tokens": least, "max_new_tokens": most}
        return {name: value for name, value in named.items() if value is not None}

    def notes(self) -> list[str]:
        """What a record says of a pinned length."""
        if not self.pinned:
            return []
        if self.fixed is not None:
            return [pinned_note(self.fixed)]
        return [f"output length fixed at {self.per_source:g} × source length + {self.beyond} tokens"]


def lengths_of(axes: Mapping[str, Any], *, random: bool) -> Lengths:
    """From the axes of a case; random weights are pinned, to `PINNED_TOKENS` when the axes say nothing."""
    least, most = axes.get("min_new_tokens"), axes.get("max_new_tokens")
    slope, offset = axes.get("max_len_a"), axes.get("max_len_b")
    if slope is not None:
        return Lengths(least=least, most=None, per_source=slope, beyond=offset or 0, pinned=random)
    if most is None and offset is not None:
        most = max(_AT_LEAST, offset)
    if random and most is None:
        most = least or PINNED_TOKENS
    return Lengths(least=least, most=most, pinned=random)


def check_lengths(axes: Mapping[str, Any]) -> None:
    """Raise SubjectError for axes that contradict each other."""
    least, most = axes.get("min_new_tokens"), axes.get("max_new_tokens")
    if most is not None and (axes.get("max_len_a") is not None or axes.get("max_len_b") is not None):
        raise SubjectError(
            "max_new_tokens cannot be combined with max_len_a and max_len_b",
            fix="use either `max_new_tokens`, or `max_len_a` and `max_len_b`",
        )
    if least is not None and most is not None and least > most:
        raise SubjectError(f"min_new_tokens {least} is more than max_new_tokens {most}", fix="lower `min_new_tokens`")
