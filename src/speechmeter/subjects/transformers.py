"""Speech models of the transformers library: a hub id, a local directory, a config file, or an architecture's name.

A source without weights (a config file, an architecture, a directory with `config.json` alone) is built with random
weights: same cost, no meaning, and the record says so. Without tokenizer files the output is token ids.
"""

from __future__ import annotations

import json
import os
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from speechmeter.core.errors import SubjectError
from speechmeter.core.plugins import nearest
from speechmeter.core.protocols import Installed, Prepared
from speechmeter.core.types import Case
from speechmeter.subjects.generation import BEAM, MAX_LEN_A, MAX_LEN_B, MAX_NEW_TOKENS
from speechmeter.subjects.installed import installed

_MODEL_TYPE = re.compile(r'^    model_type = "([^"]+)"', re.MULTILINE)
HEADS = ("encoder", "ctc", "seq2seq")


class TransformersSubject:
    """`transformers:SOURCE`: features → copy → model → decode."""

    summary = "speech models of transformers: a hub id, a directory, a config.json, or an architecture (wav2vec2)"
    axes = (BEAM, MAX_NEW_TOKENS, MAX_LEN_A, MAX_LEN_B)
    options = ("config", "head", "weights", "vocoder")
    runs_code = False

    def installed(self) -> Installed:
        """Needs torch and transformers."""
        return installed("transformers", "torch", extra="transformers")

    def check(self, case: Case) -> None:
        """The source must exist; it is looked up without importing transformers."""
        source, options = case.subject.source, case.subject.options
        if not source:
            raise SubjectError("transformers: names no model", fix="for example transformers:wav2vec2")
        if options.get("head", HEADS[0]) not in HEADS:
            raise SubjectError(f"head takes one of {', '.join(HEADS)}, not {options['head']!r}", fix="mend head")
        if options.get("weights", "auto") not in ("auto", "random"):
            raise SubjectError(f"weights takes auto or random, not {options['weights']!r}", fix="mend weights")
        if not isinstance(options.get("config", {}), dict):
            raise SubjectError("config takes a mapping of configuration values", fix="config: {hidden_size: 256}")
        if Path(source).exists():
            _check_local(Path(source))
        elif not is_architecture(source):
            _check_hub(source)

    def unavailable(self, case: Case) -> str | None:
        """Only loading it can tell."""
        return None

    def prepare(self, case: Case, device: str) -> Prepared:
        """Load or build the model and its feature extractor."""
        if not is_hub_id(case.subject.source):  # the library would ask the hub for every file it does not find
            os.environ["HF_HUB_OFFLINE"] = "1"
        from speechmeter.subjects.transformers_chain import prepare_chain

        return prepare_chain(case, device)


def is_architecture(source: str) -> bool:
    """Whether the source is a model type that transformers defines, such as `wav2vec2` or `whisper`."""
    return source in _architectures()


def is_hub_id(source: str) -> bool:
    """Whether the source can only be had from the hub or its cache."""
    return not Path(source).exists() and not is_architecture(source)


@cache
def _architectures() -> set[str]:
    spec = find_spec("transformers")
    if spec is None or not spec.submodule_search_locations:
        return set()
    models = Path(next(iter(spec.submodule_search_locations))) / "models"
    texts = (file.read_text(errors="replace") for file in models.glob("*/configuration_*.py"))
    return {name for text in texts for name in _MODEL_TYPE.findall(text)}


def _check_local(path: Path) -> None:
    config = path / "config.json" if path.is_dir() else path
    if not config.is_file():
        raise SubjectError(f"{str(path)!r} holds no config.json", fix="name a directory saved by save_pretrained")
    try:
        data = json.loads(config.read_text())
    except (ValueError, OSError, RecursionError) as error:
        raise SubjectError(f"{str(config)!r} is not a JSON configuration: {error}", fix="name a config.json") from error
    if not isinstance(data, dict) or "model_type" not in data:
        raise SubjectError(f"{str(config)!r} names no model_type", fix="name a transformers configuration")
    if "auto_map" in data:
        raise SubjectError(f"{str(path)!r} needs remote code, which is never run", fix="use a built-in architecture")


def _check_hub(source: str) -> None:
    looks_like_path = source.startswith((".", "/", "~")) or source.endswith(".json") or source.count("/") > 1
    if looks_like_path or "/" not in source:
        raise SubjectError(
            f"transformers:{source}: there is no such directory, file or architecture",
            fix=nearest(source, sorted(_architectures())) if "/" not in source and not looks_like_path else "check it",
        )
    if _cached(source):
        return
    if os.environ.get("HF_HUB_OFFLINE") == "1":
        raise SubjectError(
            f"transformers:{source} is not in the local cache, and --offline forbids the hub",
            fix="drop --offline",
        )
    _ask_hub(source)


def _cached(source: str) -> bool:
    home = Path(os.environ.get("HF_HOME", Path.home() / ".cache" / "huggingface"))
    cache = Path(os.environ.get("HF_HUB_CACHE", home / "hub"))
    return any((cache / f"models--{source.replace('/', '--')}").glob("snapshots/*/config.json"))


def _ask_hub(source: str) -> None:
    if find_spec("huggingface_hub") is None:
        return
    from huggingface_hub import HfApi

    try:
        HfApi().model_info(source, timeout=5)
    except Exception as error:
        reason = " ".join(str(error).split())[:120]
        raise SubjectError(
            f"transformers:{source} is no local directory, and the hub did not give it ({reason})",
            fix="check the name and the network, or name a directory",
        ) from error
