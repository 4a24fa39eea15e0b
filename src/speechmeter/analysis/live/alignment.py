"""Which words of one text are in another: the alignment with the fewest errors, and among those the most correct words.

`jiwer` gives the same number of errors, but no alignment with the beginning of a text, and of two alignments with as
few errors any. Here a tie is decided for the earlier words, so that the same texts always give the same figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_ERROR = 1 << 15
"""The cost of an error. A correct word costs −1, so fewer errors always win, and then more correct words."""
_DELETED, _INSERTED, _BOTH = 0, 1, 2


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """`pairs` are (index in the reference, index in the text) of each correct word; `errors` is the least number."""

    errors: int
    pairs: tuple[tuple[int, int], ...]


def common_prefix(first: Sequence[str], second: Sequence[str]) -> int:
    """With how many equal words both begin."""
    one, other = tuple(first), tuple(second)
    same, most = 0, min(len(one), len(other))
    while same < most:  # by halves: comparing slices is fast, and a stream of an hour has thousands of words
        middle = (same + most + 1) // 2
        if one[same:middle] == other[same:middle]:
            same = middle
        else:
            most = middle - 1
    return same


def align(reference: Sequence[str], text: Sequence[str], *, open_end: bool = False) -> Alignment:
    """Align two lists of words.

    With `open_end` the text is aligned with the beginning of the reference that is most like it, the shortest where
    several are: what is still to come is no error.
    """
    same = common_prefix(reference, text)
    head = tuple((index, index) for index in range(same))
    rest, said = reference[same:], text[same:]
    if open_end:
        rest = rest[: 2 * len(said)]  # a longer beginning has more errors than an empty one
    if not rest or not said:
        return Alignment(errors=len(said) + (0 if open_end else len(rest)), pairs=head)
    errors, pairs = _aligned(rest, said, open_end=open_end)
    return Alignment(errors=errors, pairs=(*head, *((same + i, same + j) for i, j in pairs)))


def _aligned(reference: Sequence[str], text: Sequence[str], *, open_end: bool) -> tuple[int, list[tuple[int, int]]]:
    import numpy as np

    numbers = {word: number for number, word in enumerate(dict.fromkeys(reference))}
    words = np.array([numbers[word] for word in reference])
    ramp: Any = np.arange(len(words) + 1, dtype=np.int64) * _ERROR
    row = ramp.copy()
    moves: Any = np.empty((len(text) + 1, len(words) + 1), dtype=np.int8)
    moves[0] = _DELETED
    for index, word in enumerate(text, start=1):
        row, moves[index] = _next_row(row, words == numbers.get(word, -1), ramp)
    end = int(np.argmin(row)) if open_end else len(words)
    cost = int(row[end])
    pairs = _pairs(moves, end, reference, text)
    return (cost + len(pairs)) // _ERROR, pairs


def _next_row(above: Any, equal: Any, ramp: Any) -> tuple[Any, Any]:
    """The costs with one more word of the text, and the last step to each: a gap where there is a choice."""
    import numpy as np

    both = np.full_like(above, np.iinfo(np.int64).max)
    both[1:] = above[:-1] + np.where(equal, -1, _ERROR)
    own = np.minimum(above + _ERROR, both)
    row = np.minimum.accumulate(own - ramp) + ramp  # with any number of words of the reference left out
    moves: Any = np.full(len(row), _BOTH, dtype=np.int8)
    moves[row == above + _ERROR] = _INSERTED
    moves[1:][row[1:] == row[:-1] + _ERROR] = _DELETED
    return row, moves


def _pairs(moves: Any, end: int, reference: Sequence[str], text: Sequence[str]) -> list[tuple[int, int]]:
    found = []
    i, j = end, len(text)
    while i or j:
        move = moves[j, i]
        if move == _DELETED:
            i -= 1
        elif move == _INSERTED:
            j -= 1
        else:
            i, j = i - 1, j - 1
            if reference[i] == text[j]:
                found.append((i, j))
    return found[::-1]
