"""Models of the Hugging Face hub: found in the local cache, or downloaded where the network may be used."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from speechmeter.core.errors import SubjectError


def may_be_hub_id(source: str) -> bool:
    """Whether a source has the form `owner/name` and is no path."""
    return source.count("/") == 1 and not source.startswith((".", "/", "~")) and not source.endswith((".json", ".yaml"))


def cached_file(source: str, name: str) -> Path | None:
    """A file of a model in the local cache; None when it is not there. Needs no package."""
    home = Path(os.environ.get("HF_HOME", Path.home() / ".cache" / "huggingface"))
    cache = Path(os.environ.get("HF_HUB_CACHE", home / "hub"))
    return next((cache / f"models--{source.replace('/', '--')}").glob(f"snapshots/*/{name}"), None)


def ask_hub(plugin: str, source: str) -> None:
    """Raise SubjectError when the hub cannot be reached, or does not have the model; nothing is downloaded."""
    named = f"{plugin}:{source}"
    if os.environ.get("HF_HUB_OFFLINE") == "1":
        raise SubjectError(f"{named} is not in the local cache, and `offline` is set", fix="run without `offline`")
    if find_spec("huggingface_hub") is None:
        return
    from huggingface_hub import HfApi

    try:
        HfApi().model_info(source, timeout=5)
    except Exception as error:
        raise SubjectError(
            f"{named} is not a local directory, not in the local cache, and not on the hub ({_short(error)})",
            fix=f"check the name and the network, or run hf download {source} elsewhere and use its directory",
        ) from error


def download(source: str) -> Path:
    """The folder of a model in the local cache, downloaded where files are missing. Raises SubjectError."""
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(source))
    except Exception as error:
        raise SubjectError(f"{source} could not be downloaded ({_short(error)})", fix="check the network") from error


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:120]
