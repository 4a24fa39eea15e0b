"""What travels between launcher and measuring process, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from speechmeter.core.outputs import Keep, SpeechFiles, TraceOptions
from speechmeter.core.types import Case, Environment, Measurement
from speechmeter.engine.measure import Outcome


@dataclass(frozen=True, kw_only=True)
class Job:
    """One process's work: the case, the meters it runs, and the name of the process in scopes of phases.

    The one that `leads` tells what the case was fed, and `keep` says what is done with the outputs of its calls.
    `spawned_ns` is the launcher's monotonic clock at the start, so that the start-up time can be told.
    `memory_group` names the control group that holds the process to `memory_bytes`, where there is one.
    """

    case: Case
    meters: tuple[str, ...]
    process: str
    leads: bool
    spawned_ns: int
    memory_bytes: int | None = None
    memory_group: str | None = None
    keep: Keep | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "case": self.case.to_json(),
            "meters": list(self.meters),
            "process": self.process,
            "leads": self.leads,
            "spawned_ns": self.spawned_ns,
            "memory_bytes": self.memory_bytes,
            "memory_group": self.memory_group,
            "keep": None if self.keep is None else _kept(self.keep),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Job:
        """The inverse of `to_json`."""
        return cls(
            case=Case.from_json(data["case"]),
            meters=tuple(data["meters"]),
            process=data["process"],
            leads=data["leads"],
            spawned_ns=data["spawned_ns"],
            memory_bytes=data["memory_bytes"],
            memory_group=data["memory_group"],
            keep=_keep(data["keep"]),
        )


def _kept(keep: Keep) -> dict[str, Any]:
    return {**asdict(keep), "folder": None if keep.folder is None else str(keep.folder)}


def _keep(data: Mapping[str, Any] | None) -> Keep | None:
    if data is None:
        return None
    folder = None if data["folder"] is None else Path(data["folder"])
    return Keep(
        folder=folder,
        speech=None if data["speech"] is None else SpeechFiles(**data["speech"]),
        trace=TraceOptions(**data["trace"]),
        outputs=data.get("outputs", True),
    )


def outcome_to_json(outcome: Outcome) -> dict[str, Any]:
    """An outcome as plain data."""
    environment = outcome.environment
    return {
        "status": outcome.status,
        "reason": outcome.reason,
        "warnings": list(outcome.warnings),
        "measurements": [m.to_json() for m in outcome.measurements],
        "environment": environment.to_json() if environment is not None else None,
    }


def outcome_from_json(data: Mapping[str, Any]) -> Outcome:
    """The inverse of `outcome_to_json`."""
    environment = data["environment"]
    return Outcome(
        status=data["status"],
        reason=data["reason"],
        warnings=tuple(data["warnings"]),
        measurements=tuple(Measurement.from_json(m) for m in data["measurements"]),
        environment=Environment(facts=environment["facts"], state=environment["state"]) if environment else None,
    )
