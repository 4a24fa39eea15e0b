"""What `compile: true` compiles of a model that generates: its encoder, its vocoder, its step where the library can.

A cache that grows makes a new graph for every length (112 s for the first call of a small Whisper), so a decoder is
compiled only where the library has a static cache for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

_WHOLE = frozenset({"encoder", "ctc", "units", "vocoder"})
_SEARCHES = frozenset({"seq2seq", "st", "mt"})
_WALKS = frozenset({"rnnt", "tdt"})
_SPEAKS = frozenset({"tts", "s2st"})


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """The parts that were compiled, and what `generate` must be told for it."""

    parts: tuple[str, ...] = ()
    generate_options: dict[str, Any] = field(default_factory=dict)

    def notes(self) -> list[str]:
        """What a reader must know of a model that is compiled in part; nothing for any other."""
        return [f"torch.compile: {' and '.join(self.parts)}; the loop around runs as it is"] if self.parts else []


def not_compiled(head: str, kind: str) -> str | None:
    """Why nothing of this model is compiled; None when something is."""
    if head in _WHOLE | _SEARCHES | _WALKS or (head in _SPEAKS and kind == "speecht5"):
        return None
    return f"compile: head {head!r} of {kind} has no part that is compiled here"


def compile_parts(head: str, model: Any, vocoder: Any) -> Compiled:
    """Compile the parts of a model that generates, in place. Other models are compiled whole where they are called."""
    if head in _WHOLE:
        return Compiled()
    _encoder(model).compile()
    if vocoder is not None:
        vocoder.compile()
        return Compiled(parts=("encoder", "vocoder"))
    if head in _SEARCHES and getattr(model, "_can_compile_fullgraph", False):
        return Compiled(parts=("encoder", "decoder step (static cache)"), generate_options=_static_cache())
    return Compiled(parts=("encoder",))


def _encoder(model: Any) -> Any:
    return model.encoder if hasattr(model, "joint") else model.get_encoder()


def _static_cache() -> dict[str, Any]:
    from transformers.generation.configuration_utils import CompileConfig

    config = CompileConfig(mode="default", fullgraph=False)
    config._compile_all_devices = True  # the library compiles on accelerators alone when it is not told
    return {"cache_implementation": "static", "compile_config": config}
