"""The stages of models that are on this machine: the library, which decides when it is imported, asks no hub."""

from __future__ import annotations

import os

os.environ["HF_HUB_OFFLINE"] = "1"  # else it would ask the hub for every file that is missing

from speechmeter.subjects.transformers.stages import prepare_chain

__all__ = ["prepare_chain"]
