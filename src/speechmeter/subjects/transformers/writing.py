"""Heads whose output is text or discrete units: CTC, encoder-decoders, transducers, nearest centres. Imports torch."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch

from speechmeter.core.errors import SubjectError
from speechmeter.core.types import Stage
from speechmeter.subjects import torch_runtime as runtime
from speechmeter.subjects.transformers.loading import Loaded
from speechmeter.subjects.transformers.pinning import PinnedSearch, SteeredJoint
from speechmeter.subjects.transformers.sources import CLUSTERS

Inputs = Mapping[str, Any]


def _first_output(loaded: Loaded) -> Callable[[Inputs], Any]:
    forward = runtime.compiled(loaded.model, loaded.case)
    return lambda inputs: forward(**accepted(loaded.model.forward, inputs))[0]


def encoder_stages(loaded: Loaded) -> list[Stage]:
    """One call of the model: the states, or the scores, of every frame."""
    return [Stage(name="model", fn=runtime.inference(_first_output(loaded)), modules={"model": loaded.model})]


def ctc_stages(loaded: Loaded) -> list[Stage]:
    """Scores of every frame, then the best symbols."""
    return [
        *encoder_stages(loaded),
        Stage(name="decode", fn=lambda scores: _written(loaded, scores.argmax(dim=-1))),
    ]


def seq2seq_stages(loaded: Loaded) -> list[Stage]:
    """A search over texts, then the text."""
    search = _Search(loaded)
    pinned = loaded.lengths.fixed if loaded.lengths.per_source is None else search.longest
    pad = loaded.model.generation_config.pad_token_id

    def tokens(ids: Any) -> int:  # random weights may make padding too: there every id counts
        return int(ids.numel() if loaded.random or pad is None else (ids != pad).sum())

    return [
        Stage(
            name="model",
            fn=runtime.inference(search),
            modules={"model": loaded.model},
            tokens=tokens,
            pinned_tokens=pinned if loaded.lengths.pinned else None,
        ),
        Stage(name="decode", fn=lambda ids: _written(loaded, ids)),
    ]


class _Search:
    """From a model's inputs to the ids that `generate` makes of them."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded, self._prompt, self._most = loaded, prompt_width(loaded), 0
        self._options = {"do_sample": False, "num_beams": loaded.beam, **loaded.generate_options}
        # Whisper, whose output has no prompt, makes several searches of long sound
        several = loaded.lengths.pinned and loaded.beam > 1 and self._prompt > 0
        self._pinned = PinnedSearch(loaded.model) if several else None

    def longest(self) -> int:
        """How many tokens the latest call was allowed to make of each item."""
        return self._most

    def __call__(self, inputs: Inputs) -> Any:
        loaded, encoded = self._loaded, {}
        bounds = loaded.lengths.bounds()
        if loaded.lengths.per_source is not None:
            encoder = loaded.model.get_encoder()
            encoded = {"encoder_outputs": encoder(**accepted(encoder.forward, inputs))}
            bounds = loaded.lengths.bounds(encoded["encoder_outputs"][0].shape[1])
        self._most = bounds.get("max_new_tokens", 0)
        search = partial(loaded.model.generate, **inputs, **encoded, **bounds, **self._options)
        return search()[:, self._prompt :] if self._pinned is None else self._pinned.run(search, self._prompt)


def prompt_width(loaded: Loaded) -> int:
    """Ids that `generate` puts before those it made: the start, and a language where one is named.

    Whisper cuts them off itself.
    """
    if loaded.kind == "whisper":
        return 0
    return 2 if "tgt_lang" in loaded.generate_options else 1


def transducer_stages(loaded: Loaded) -> list[Stage]:
    """A greedy walk over the frames, then the text. Random weights are steered, with blanks between the tokens."""
    config = loaded.config
    pad = loaded.model.generation_config.pad_token_id
    pinned = loaded.lengths.fixed
    steered = _steered(loaded) if loaded.random else None

    def model(inputs: Inputs) -> Any:
        bounds = loaded.lengths.bounds() if steered is None else {}
        if steered is not None and pinned is not None:
            lengths = inputs["attention_mask"].sum(-1)
            frames = [int(count) for count in loaded.model.encoder._get_subsampling_output_length(lengths).tolist()]
            most = config.max_symbols_per_step
            if pinned >= min(frames) * most:
                raise SubjectError(
                    f"{pinned} tokens do not fit into {min(frames)} frames, each of which can hold at most {most}",
                    fix="lower `max_new_tokens` or use longer sound",
                )
            bounds = {"max_new_tokens": steered.plan(frames, pinned)}
        return loaded.model.generate(**inputs, **bounds, **loaded.generate_options).sequences[:, 1:]

    def spoken(ids: Any) -> Any:
        return (ids != config.blank_token_id) & (ids != pad)

    def decode(ids: Any) -> list[Any]:
        rows = [row[keep].tolist() for row, keep in zip(ids, spoken(ids), strict=True)]
        return rows if loaded.tokenizer is None else list(loaded.tokenizer.batch_decode(rows, skip_special_tokens=True))

    return [
        Stage(
            name="model",
            fn=runtime.inference(model),
            modules={"model": loaded.model},
            tokens=lambda ids: int(spoken(ids).sum()),
            pinned_tokens=pinned,
        ),
        Stage(name="decode", fn=decode),
    ]


def _steered(loaded: Loaded) -> SteeredJoint:
    config = loaded.config
    if not hasattr(loaded.model, "joint") or loaded.lengths.fixed is None:
        raise SubjectError(
            f"{loaded.kind} with random weights has no length to pin",
            fix="use a directory with weights, or set `max_new_tokens`",
        )
    taken = {config.blank_token_id, loaded.model.generation_config.pad_token_id}
    return SteeredJoint(
        loaded.model.joint,
        vocabulary=config.vocab_size,
        blank=config.blank_token_id,
        token=next(number for number in range(config.vocab_size) if number not in taken),
        durations=len(getattr(config, "durations", ())),
    )


def _written(loaded: Loaded, ids: Any) -> list[Any]:
    """Text of each item; without a tokenizer its ids."""
    if loaded.tokenizer is None:
        rows: list[Any] = ids.tolist()
        return rows
    if loaded.head == "ctc":
        ids.reshape(-1)[0].item()  # decoding depends on values: on shapes alone this raises an error
    texts: list[Any] = loaded.tokenizer.batch_decode(ids, skip_special_tokens=True)
    return texts


def accepted(call: Callable[..., Any], inputs: Inputs) -> dict[str, Any]:
    """The inputs that the call has parameters for: extractors make masks that not every model takes."""
    names = inspect.signature(call).parameters
    return {key: value for key, value in inputs.items() if key in names}


def writing_notes(loaded: Loaded) -> list[str]:
    """Pinned lengths, a beam that does nothing, and what the output is."""
    searches = loaded.head in ("seq2seq", "mt")
    return [
        *(loaded.lengths.notes() if loaded.head != "ctc" else []),
        *([] if searches or loaded.beam == 1 else [f"beam {loaded.beam} has no effect: head {loaded.head} is greedy"]),
        *(["no tokenizer files: output is token ids"] if loaded.tokenizer is None else []),
    ]


class Codebook(torch.nn.Module):  # type: ignore[misc]
    """Random centres. (items, frames, width) → (items, frames), the number of the nearest centre."""

    def __init__(self, clusters: int, width: int) -> None:
        super().__init__()
        self.centres = torch.nn.Parameter(torch.randn(clusters, width))

    def forward(self, hidden: Any) -> Any:
        """|h − c|² without |h|², which is the same for all centres."""
        return (self.centres.square().sum(-1) - 2 * hidden @ self.centres.T).argmin(-1)


def units_stages(loaded: Loaded) -> list[Stage]:
    """Encoder and nearest centre, one unit a frame; then the units of each item as a list."""
    clusters = int(loaded.case.subject.options.get("clusters", CLUSTERS.default))
    codebook = Codebook(clusters, loaded.config.hidden_size).to(device=loaded.device, dtype=loaded.dtype).eval()
    states = _first_output(loaded)

    return [
        Stage(
            name="model",
            fn=runtime.inference(lambda inputs: codebook(states(inputs))),
            modules={"model": loaded.model, "codebook": codebook},
            tokens=lambda units: int(units.numel()),
        ),
        Stage(name="decode", fn=lambda units: units.tolist()),
    ]
