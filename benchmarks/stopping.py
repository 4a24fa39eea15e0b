"""What adaptive rounds cost and reach, beside the classic schedule of 10/10/20/2 calls.

Three models, each measured twice on this machine: with the classic schedule in five fresh processes, and adaptively
(steady warm-up, few samples, rounds until the interval over processes is within the precision). Precision is half the
95 % interval over processes, for both. Where adaptive takes longer, the line says why.

    python benchmarks/stopping.py        about 8 minutes; exit 1 when adaptive is longer without a reason
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import speechmeter
from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.stopping import Rounds
from speechmeter.core import metrics
from speechmeter.core.types import Record

WORK = Path(__file__).parent / "subjects" / "work.py"
TINY = {"hidden_size": 192, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 768}
MODELS: list[Any] = [
    "log-mel",
    {"name": "work", "load": f"python:{WORK}:first"},
    {"name": "wav2vec2-small", "load": "transformers:wav2vec2", "config": TINY},
]
SCHEDULE = {"wait": 10, "warmup": 10, "active": 20, "repeat": 2}
FIXED_ROUNDS = 5
ADAPTIVE = Rounds(least=5, most=15, precision=0.05)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one way of measuring cost and reached for one model."""

    wall_s: float
    rounds: int
    samples: int
    precision: float
    records: Sequence[Record]


def measured(model: Any, folder: Path, **keys: Any) -> Outcome:
    """Run one model one way."""
    plan = {"models": [model], "seconds": 5, "audio": "sample", "threads": 1, "meters": ["latency"], **keys}
    records = speechmeter.run(plan, output=folder).records
    figure = estimate(records, metrics.LATENCY)
    if figure is None:
        raise RuntimeError(f"{records[0].case.label}: {records[0].reason}")
    return Outcome(
        wall_s=sum(record.wall_s for record in records),
        rounds=figure.rounds,
        samples=figure.rounds * figure.samples_per_round,
        precision=figure.half_width or 0.0,
        records=records,
    )


def reason(adaptive: Outcome, fixed: Outcome) -> str | None:
    """Why adaptive took longer; empty when it did not; None when nothing explains it."""
    if adaptive.wall_s <= fixed.wall_s:
        return ""
    if adaptive.rounds > fixed.rounds:
        at_five = estimate(adaptive.records[:FIXED_ROUNDS], metrics.LATENCY)
        spread = at_five.half_width if at_five else None
        return f"longer: after 5 rounds the interval was ±{spread or 0:.1%}, so {adaptive.rounds} rounds were chosen"
    starts = [sum(o.wall_s for o in (side,)) / side.rounds for side in (adaptive, fixed)]
    if starts[0] <= 1.25 * starts[1]:
        return "longer by less than a quarter a process: process start-up varies by more than that"
    return None


def main() -> int:
    """Print a line for each model and way; 0 when no longer time is unexplained."""
    print(f"{'':16}{'way':12}{'seconds':>9}{'processes':>11}{'samples':>9}{'± over processes':>18}")
    unexplained = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, model in enumerate(MODELS):
            name = model if isinstance(model, str) else model["name"]
            fixed = measured(model, Path(folder) / f"f{number}", schedule=SCHEDULE, rounds=FIXED_ROUNDS)
            adaptive = measured(
                model,
                Path(folder) / f"a{number}",
                rounds="auto",
                max_rounds=ADAPTIVE.most,
                precision=ADAPTIVE.precision,
            )
            for way, found in (("10/10/20/2", fixed), ("adaptive", adaptive)):
                line = f"{name:16}{way:12}{found.wall_s:9.1f}{found.rounds:11}{found.samples:9}{found.precision:18.1%}"
                print(line, flush=True)
            why = reason(adaptive, fixed)
            unexplained += why is None
            if why != "":
                print(f"{'':16}{why or 'longer, and nothing here explains it'}", flush=True)
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
