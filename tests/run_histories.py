"""Histories made by hand: a folder of runs, a commit each, whose latencies are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from conftest import make_case, make_record

from speechmeter.core import metrics
from speechmeter.core.types import Case, Environment, Measurement, Status
from speechmeter.store.run_dir import RunWriter

FACTS = {"host": "desk", "cpu": "abacus", "cores": [0], "system": "Linux 1", "packages": {"torch": "2.9"}}


def write_run(
    path: Path, day: int, rounds: Sequence[float], case: Case | None = None, status: Status = "ok", busy: float = 0.0,
    **facts: Any,
) -> None:  # fmt: skip
    """One run of latencies in seconds, begun on a day of May 2026; `busy` is the share of the cores others used."""
    environment = Environment(facts={**FACTS, "git": f"c0ffee{day:02d}", **facts})
    with RunWriter(path) as store:
        store.begin("")
        for number, value in enumerate(rounds):
            record = make_record(
                case or make_case("model"),
                Measurement.of(metrics.LATENCY, [value]),
                Measurement.of(metrics.OTHER_BUSY, [busy]),
                round=number,
                sequence=number,
                status=status,
                host=environment.facts["host"],
                environment=environment.fingerprint,
                started=f"2026-05-{day:02d}T10:00:{number:02d}.000+00:00",
            )
            store.append(record, environment)


def write_crash(path: Path, day: int, rounds: int = 3, case: Case | None = None, first: int = 0) -> None:
    """A run whose process was killed in every round from `first` on: no readings, no environment."""
    with RunWriter(path) as store:
        store.begin("")
        for number in range(first, first + rounds):
            record = make_record(
                case or make_case("model"),
                round=number,
                sequence=number,
                status="crashed",
                reason="killed by SIGSEGV, in first call",
                host=FACTS["host"],
                started=f"2026-05-{day:02d}T10:00:{number:02d}.000+00:00",
            )
            store.append(record)


def write_history(
    folder: Path, values: Sequence[float], facts: Mapping[int, Mapping[str, Any]] | None = None, **options: Any
) -> None:
    """A run a day of three rounds around the given latency; `facts` are changes by number of the run."""
    for number, value in enumerate(values):
        write_run(
            folder / f"run-{number:02d}",
            number + 1,
            [value * factor for factor in (0.999, 1.0, 1.001)],
            **options,
            **(facts or {}).get(number, {}),
        )
