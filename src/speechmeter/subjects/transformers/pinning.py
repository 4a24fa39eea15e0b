"""Lengths for random weights: they would stop at random, so they are pinned to usual ones of speech. Imports torch.

Durations are replaced after the network that predicts them, which still runs. They depend on no values, so they are
known on shapes alone too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

LETTER_FRAMES = 4
"""Frames of 16 ms for a letter of text: 15 letters a second."""
PHONE_FRAMES = 6
"""Frames of 12 ms for a phone: 14 phones a second."""
ECHO_FRAMES = 1.25
"""Frames of 16 ms for one of the encoder's of 20 ms: speech as long as what was heard."""
UNITS_PER_TOKEN = 8
"""Units for a text token: a token is about 0.3 s of speech, and a unit about 40 ms."""
UNIT_FRAMES = 2
"""Frames of 20 ms for a unit, after repeated ones were joined."""
LANGUAGE = "xxx"
"""The one language that a model with random weights knows."""
UNKNOWN = 1
"""SeamlessM4T's id of an unknown token, which has fewer letters than the others."""
_SUBWORD = "▁abc"
"""The text of every token of SeamlessM4T v2: 4 letters, each of which makes `UNIT_FRAMES` units."""
_BIG = 1e4


def fill_generation_config(model: Any, config: Any) -> None:
    """Set what `generate` needs and an architecture alone does not have: a start token, a language."""
    generation = getattr(model, "generation_config", None)
    if generation is None:
        return
    if generation.decoder_start_token_id is None and generation.bos_token_id is None:
        generation.decoder_start_token_id = generation.pad_token_id or 0
    if generation.eos_token_id == 0:  # what an arg max on shapes alone gives; a pinned length needs no end
        generation.eos_token_id = generation.forced_eos_token_id = None
    if str(config.model_type).startswith("seamless"):
        for table in ("text_decoder_lang_to_code_id", "t2u_lang_code_to_id", "vocoder_lang_code_to_id"):
            setattr(generation, table, {LANGUAGE: 1})
        generation.id_to_text = {str(token): _SUBWORD for token in range(config.vocab_size)}
        generation.char_to_id = {letter: index + 2 for index, letter in enumerate(_SUBWORD)}


def pin_durations(predictor: Any, frames: int) -> None:
    """A predictor of whole durations (FastSpeech 2) gives `frames` for every symbol."""
    _replace_output(predictor, float(frames), torch.long)


def pin_log_durations(predictor: Any, frames: int) -> None:
    """A predictor of log durations that are rounded up (VITS) gives `frames` for every symbol."""
    _replace_output(predictor, math.log(frames - 0.5))  # halfway: right in half precision too


def pin_log1p_durations(predictor: Any, frames: int) -> None:
    """A predictor of log(1 + duration) (SeamlessM4T) gives `frames` for every symbol."""
    _replace_output(predictor, math.log1p(frames))


def _replace_output(predictor: Any, value: float, dtype: torch.dtype | None = None) -> None:
    def constant(module: Any, inputs: Any, output: Any) -> Any:
        return torch.full(tuple(output.shape), value, dtype=dtype or output.dtype, device=output.device)

    predictor.register_forward_hook(constant)


def keep_units_known(embedding: Any) -> None:
    """Random weights make control symbols among the units, which the vocoder does not know: take the nearest unit."""

    def known(module: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return (inputs[0].clamp(0, module.num_embeddings - 1),)

    embedding.register_forward_pre_hook(known)


def transducer_steps(frames: int, tokens: int, longest: int) -> Iterator[tuple[bool, int]]:
    """A greedy search that spreads the tokens over the frames: for each step whether it is blank, and how far it moves.

    `longest` is the longest move of a token-and-duration transducer, whose tokens move too; 0 for a plain one, where
    only a blank moves, by one frame.
    """
    for token in range(tokens):
        left = (token + 1) * frames // tokens - token * frames // tokens
        moved = min(left, longest)
        yield False, moved
        left -= moved
        while left:
            moved = min(left, max(longest, 1))
            yield True, moved
            left -= moved


class SteeredJoint:
    """Makes the joint network of a transducer decide as planned: `plan` before each call of `generate`."""

    def __init__(self, joint: Any, *, vocabulary: int, blank: int, token: int, durations: int) -> None:
        self._vocabulary, self._blank, self._token, self._durations = vocabulary, blank, token, durations
        self._steps: list[list[tuple[bool, int]]] = []
        self._step = 0
        joint.register_forward_hook(self._steer)

    def plan(self, frames: list[int], tokens: int) -> int:
        """Spread `tokens` over the frames of each item; the number of steps of the longest."""
        longest = max(self._durations - 1, 0)
        self._steps = [list(transducer_steps(count, tokens, longest)) for count in frames]
        self._step = 0
        return max(map(len, self._steps))

    def _steer(self, module: Any, inputs: Any, logits: Any) -> Any:
        """Adds a vector, which costs next to nothing beside the matrix before it."""
        push = torch.zeros((len(self._steps), logits.shape[-1]), dtype=logits.dtype)
        for row, steps in enumerate(self._steps):
            is_blank, moved = steps[min(self._step, len(steps) - 1)]
            push[row, self._blank if is_blank else self._token] = _BIG
            if self._durations:
                push[row, self._vocabulary + moved] = _BIG / 2
        self._step += 1
        return logits + push.to(logits.device).reshape(len(self._steps), *[1] * (logits.dim() - 2), -1)


class PinnedSearch:
    """Ends a beam search of random weights at its pinned length, where it ends anyway.

    No beam of such a search is finished before its last step. The library finds that out by comparing scores, which on
    shapes alone are not there; here the length alone decides, so that the steps are known without values.
    """

    def __init__(self, model: Any) -> None:
        self._steps = 0
        model._beam_search_has_unfinished_sequences = self._goes_on

    def run(self, search: Callable[[], Any], prompt: int) -> Any:
        """The new ids of a search, one for every step it made: without scores no beam can be chosen as the best."""
        self._steps = 0
        ids = search()[:, prompt:]
        missing = self._steps - ids.shape[1]
        return torch.nn.functional.pad(ids, (0, missing)) if missing > 0 else ids

    def _goes_on(self, can_improve: Any, is_finished: Any, at_the_end: Any, early_stopping: Any) -> Any:
        self._steps += 1
        return ~torch.all(at_the_end)
