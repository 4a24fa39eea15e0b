"""What a plan may ask of the quality of outputs, and the names that go into the protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NORMALISERS: Mapping[str, str] = {"none": "none.v1", "basic": "basic.v1", "english": "english.v1"}
"""The id with version of each normaliser, by the name that a plan gives. A changed rule gets a new version."""
SCORES = ("wer", "cer", "bleu", "chrf")
"""Scores that a plan may ask for."""
QUALITY = "quality"
"""The name of the meter, of the plan's key and of its part of the protocol."""
IMPORT = "import"
"""The key of a file with scores that were taken elsewhere."""
IMPORTED = "imported"
"""The source of a figure that was not measured here."""


UTTERANCES = "utterances"
"""The note of `answered.v1` that holds the ids of the utterances, in the order of the values."""


def default_scores(workload: str) -> tuple[str, ...]:
    """What is scored where the plan is silent: translations of text, transcripts of anything else."""
    return ("bleu", "chrf") if workload == "text" else ("wer", "cer")


def quality_of(protocol: Mapping[str, Any], workload: str) -> tuple[str, tuple[str, ...]]:
    """(id of the normaliser, scores) of a protocol; the defaults where it says nothing."""
    asked = protocol.get(QUALITY, {})
    return asked.get("normaliser", NORMALISERS["basic"]), tuple(asked.get("scores") or default_scores(workload))
