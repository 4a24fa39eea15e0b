"""What a plan may ask of the quality of outputs, and the names that go into the protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

NORMALISERS: Mapping[str, str] = {"none": "none.v1", "basic": "basic.v2", "english": "english.v2"}
"""The newest id of each normaliser, by the name that a plan gives. A changed rule gets a new version."""
VERSIONS = ("none.v1", "basic.v1", "basic.v2", "english.v1", "english.v2")
"""Every id that there is: older ones stay, for the records and plans that name them."""
FIRST_VERSION = ".v1"
"""What a name without a version meant in a plan that a run keeps; later ones keep the id."""
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
SPEAKERS = "speakers"
"""The note beside it that holds who speaks each of them, where the data say so of all."""


@dataclass(frozen=True, kw_only=True)
class Quality:
    """How outputs are scored: a normaliser's id and the scores; or a file to import scores from, and its hash."""

    normaliser: str | None = None
    scores: tuple[str, ...] = ()
    import_: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain data, as stored in a protocol."""
        given = {"normaliser": self.normaliser, "scores": list(self.scores), IMPORT: self.import_}
        return {**{key: value for key, value in given.items() if value}, **self.extra}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Quality:
        """The inverse of `to_json`."""
        return cls(
            normaliser=data.get("normaliser"),
            scores=tuple(data.get("scores", ())),
            import_=data.get(IMPORT),
            extra={key: value for key, value in data.items() if key not in ("normaliser", "scores", IMPORT)},
        )


def default_scores(workload: str) -> tuple[str, ...]:
    """What is scored where the plan is silent: translations of text, transcripts of anything else."""
    return ("bleu", "chrf") if workload == "text" else ("wer", "cer")


def quality_of(asked: Quality | None, workload: str) -> tuple[str, tuple[str, ...]]:
    """(id of the normaliser, scores) of a protocol; the defaults where it says nothing."""
    asked = asked or Quality()
    return asked.normaliser or NORMALISERS["basic"], asked.scores or default_scores(workload)


def normaliser_id(asked: str | None) -> str:
    """The id that a plan means by a name, an id, or nothing."""
    return NORMALISERS.get(asked or "basic", asked or "")
