"""OpenAI's own Whisper: `openai-whisper:SIZE` or `openai-whisper:FILE.pt`.

A size is built from its published dimensions with random weights, a checkpoint is loaded. Decoding is the library's:
greedy or beam search in windows of 30 s, without timestamps and without trying again at a higher temperature.
"""

from __future__ import annotations

from pathlib import Path

from speechmeter.core.axes import Option
from speechmeter.core.errors import SubjectError
from speechmeter.core.plugins import nearest
from speechmeter.core.protocols import SOUND, Installed, Prepared
from speechmeter.core.types import Case
from speechmeter.subjects.generation import BEAM, MAX_NEW_TOKENS
from speechmeter.subjects.installed import installed

SIZES = {
    "tiny": (384, 6, 4),
    "base": (512, 8, 6),
    "small": (768, 12, 12),
    "medium": (1024, 16, 24),
    "large-v2": (1280, 20, 32),
    "large-v3": (1280, 20, 32),
}
"""Width, heads and layers of the multilingual models, encoder and decoder alike."""
MOST_TOKENS = 444
"""The 448 positions of the decoder less the four tokens that every text begins with."""


class OpenAIWhisperSubject:
    """`openai-whisper:SOURCE`: features → copy → model → decode."""

    summary = "OpenAI's Whisper: a size with random weights (openai-whisper:tiny) or a checkpoint file"
    axes = (BEAM, MAX_NEW_TOKENS)
    options = (
        Option(name="language"),
        Option(name="weights"),
    )
    runs_code = False
    takes = (SOUND,)

    def installed(self) -> Installed:
        """Needs openai-whisper; another package called whisper is not it."""
        return installed("whisper", "tiktoken", "torch", extra="openai-whisper", distribution="openai-whisper")

    def check(self, case: Case) -> None:
        """A size or a file that is there; nothing is downloaded."""
        source, options = case.subject.source, case.subject.options
        if source not in SIZES and not Path(source).is_file():
            looks_like_file = "/" in source or source.endswith(".pt")
            fix = "name a checkpoint that is there" if looks_like_file else nearest(source, [*SIZES])
            raise SubjectError(f"openai-whisper: {source!r} is no size and no file", fix=fix)
        if options.get("weights", "auto") not in ("auto", "random"):
            raise SubjectError(f"weights takes auto or random, not {options['weights']!r}", fix="mend weights")
        if not isinstance(options.get("language", "en"), str):
            raise SubjectError(f"language takes a code, not {options['language']!r}", fix="language: en")

    def unavailable(self, case: Case) -> str | None:
        """The library has two number formats and no way to compile."""
        dtype, on_cuda = case.axes["dtype"], case.device.is_cuda
        if dtype != "float32" and not (dtype == "float16" and on_cuda):
            return "openai-whisper runs in float32, and on CUDA in float16 too"
        if case.axes["compile"]:
            return "openai-whisper keeps its cache by hooks that it hangs up in every call: torch.compile does not fit"
        if (case.axes.get("max_new_tokens") or 1) > MOST_TOKENS:
            return f"Whisper generates at most {MOST_TOKENS} tokens in one window"
        return None

    def prepare(self, case: Case, device: str) -> Prepared:
        """Build or load the model."""
        from speechmeter.subjects.openai_whisper_chain import prepare_chain

        return prepare_chain(case, device)
