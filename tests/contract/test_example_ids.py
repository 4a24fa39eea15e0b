"""The text of a case that is hashed stays as it is, so that old runs resume and compare with new ones."""

import hashlib
import json
from pathlib import Path

import pytest

from speechmeter.core.types import Case

RUNS = sorted((Path(__file__).parents[2] / "examples" / "runs").iterdir())
DIGESTS = {
    "accuracy-vs-cost": (4, "12d4c00350836502"),
    "cpu-grid": (16, "6c7d3a761cf6e6fa"),
    "h200-conformer-modules": (2, "746216789897003c"),
    "h200-frontier": (21, "9bd48f03d1c1e4ff"),
    "h200-loss-frontier": (80, "7555c45d218b204e"),
    "h200-losses": (32, "7891d0cb5492d9fc"),
    "live-paces": (2, "23843b0b355141e5"),
    "live-streams": (4, "d4c819e5de4dfdb4"),
    "speech-out": (4, "63f1f4ed74afec96"),
    "voice-capacity": (5, "f15ff5f173ce36b8"),
}
"""How many cases each run has, and a hash of their ids as they were when the run was made."""


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_every_case_of_the_examples_keeps_its_id(run):
    cases = [Case.from_json(json.loads(line)["case"]) for line in (run / "records.jsonl").open(encoding="utf-8")]
    ids = sorted({case.id for case in cases})
    assert (len(ids), hashlib.sha256(" ".join(ids).encode()).hexdigest()[:16]) == DIGESTS[run.name]
