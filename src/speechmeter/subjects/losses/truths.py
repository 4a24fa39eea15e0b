"""The oracle of each kind of loss, in float64. Imports torch."""

from __future__ import annotations

import torch

from speechmeter.subjects.losses.call import BLANK, Labels
from speechmeter.subjects.losses.known import BIG_BLANKS, CTC, DURATIONS, MULTI_BLANK, TDT
from speechmeter.transducer import multi_blank_oracle, oracle_loss, tdt_oracle


def truth(kind: str, logits: torch.Tensor, labels: Labels) -> torch.Tensor:
    """Return the loss of each utterance by the definition of its kind, differentiable in the logits."""
    if kind == TDT:
        tokens, waits = logits.split([logits.shape[-1] - len(DURATIONS), len(DURATIONS)], -1)
        return tdt_oracle(tokens, waits, *labels.arguments, durations=DURATIONS, blank=BLANK)
    if kind == MULTI_BLANK:
        return multi_blank_oracle(logits, *labels.arguments, big_blanks_of(logits.shape[-1]), BLANK)
    if kind == CTC:
        rows = zip(logits, labels.targets.tolist(), labels.sizes, strict=True)
        return torch.stack([_ctc(row[:frames], ids[:count]) for row, ids, (frames, count) in rows])
    return oracle_loss(logits, *labels.arguments, blank=BLANK, reduction="none")


def big_blanks_of(outputs: int) -> dict[int, int]:
    """The last ids of so many outputs, and the frames that each takes."""
    return dict(zip(range(outputs - len(BIG_BLANKS), outputs), BIG_BLANKS, strict=True))


def _ctc(logits: torch.Tensor, labels: list[int]) -> torch.Tensor:
    """CTC of one utterance (T, V): labels with blanks between, each for a frame or more; a blank parts two alike."""
    scores = logits.double().log_softmax(-1)
    symbols = [BLANK, *(symbol for label in labels for symbol in (label, BLANK))]
    never = scores.new_full((), -torch.inf)
    alpha = [scores[0, symbol] if place < 2 else never for place, symbol in enumerate(symbols)]
    for frame in scores[1:]:
        ways = []
        for place, symbol in enumerate(symbols):
            from_here = [alpha[place], *alpha[max(0, place - 1) : place]]
            if symbol != BLANK and place > 1 and symbols[place - 2] != symbol:
                from_here.append(alpha[place - 2])
            possible = [way for way in from_here if way.isfinite()]
            ways.append(torch.stack(possible).logsumexp(0) + frame[symbol] if possible else never)
        alpha = ways
    return -torch.stack(alpha[-2:]).logsumexp(0)
