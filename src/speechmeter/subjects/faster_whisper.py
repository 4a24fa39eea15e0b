"""Whisper under CTranslate2: `faster-whisper:DIR`, a directory that CTranslate2's converter wrote.

Greedy or beam search in windows of 30 s, without timestamps and without trying again at a higher temperature. A
directory does not tell whether its weights were trained: the option `weights: random` says that they were not.
"""

from __future__ import annotations

from pathlib import Path

from speechmeter.core.axes import Option
from speechmeter.core.errors import SubjectError
from speechmeter.core.protocols import SOUND, Installed, Prepared
from speechmeter.core.types import Case
from speechmeter.subjects.generation import BEAM, MAX_NEW_TOKENS, NONE, QUANTIZE
from speechmeter.subjects.installed import installed

MOST_TOKENS = 224
"""CTranslate2 generates no more than half of Whisper's 448 positions."""
_FILES = ("model.bin", "config.json", "tokenizer.json")
_CONVERT = (
    "ct2-transformers-converter --model MODEL --output_dir DIR --copy_files tokenizer.json preprocessor_config.json"
)


class FasterWhisperSubject:
    """`faster-whisper:DIR`: features → model → decode."""

    summary = "Whisper under CTranslate2: faster-whisper:DIR, a converted model with its tokenizer.json"
    axes = (BEAM, MAX_NEW_TOKENS, QUANTIZE)
    options = (
        Option(name="language"),
        Option(name="weights"),
    )
    runs_code = False
    takes = (SOUND,)

    def installed(self) -> Installed:
        """Needs faster-whisper and its engine."""
        return installed("faster_whisper", "ctranslate2", extra="faster-whisper")

    def check(self, case: Case) -> None:
        """The directory must hold a converted model; nothing is downloaded."""
        path, options = Path(case.subject.source), case.subject.options
        if not case.subject.source or not path.is_dir():
            raise SubjectError(f"faster-whisper: there is no directory {case.subject.source!r}", fix=_CONVERT)
        missing = [name for name in _FILES if not (path / name).is_file()]
        if missing:
            raise SubjectError(f"{str(path)!r} holds no {missing[0]}", fix=_CONVERT)
        if options.get("weights", "auto") not in ("auto", "random"):
            raise SubjectError(f"weights takes auto or random, not {options['weights']!r}", fix="mend weights")
        if not isinstance(options.get("language", "en"), str):
            raise SubjectError(f"language takes a code, not {options['language']!r}", fix="language: en")

    def unavailable(self, case: Case) -> str | None:
        """CTranslate2 knows which number formats the device has."""
        if case.axes["compile"]:
            return "CTranslate2 has its own kernels: torch.compile has no part in them"
        if (case.axes.get("max_new_tokens") or 1) > MOST_TOKENS:
            return f"CTranslate2 generates at most {MOST_TOKENS} tokens of a Whisper model in one call"
        return _missing_format(case)

    def prepare(self, case: Case, device: str) -> Prepared:
        """Load the converted model and its tokenizer."""
        from speechmeter.subjects.faster_whisper_chain import prepare_chain

        return prepare_chain(case, device)


def compute_type(case: Case) -> str:
    """What CTranslate2 calls the case's number format."""
    dtype = str(case.axes["dtype"])
    return dtype if case.axes["quantize"] == NONE else f"int8_{dtype}"


def _missing_format(case: Case) -> str | None:
    wanted, kind = compute_type(case), case.device.kind
    if wanted == "float32" and case.device.is_cpu:  # always there: no need to ask
        return None
    import ctranslate2

    if case.device.is_cuda and not ctranslate2.get_cuda_device_count():
        return "CTranslate2 sees no CUDA device"
    here = ctranslate2.get_supported_compute_types(kind)
    return None if wanted in here else f"CTranslate2 has no {wanted} on this {kind}, only {', '.join(sorted(here))}"
