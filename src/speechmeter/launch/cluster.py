"""The machines of a cluster, and which of them may measure which case.

A case that no machine can measure is refused before anything is written. `ray.py` connects the machines.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

from speechmeter.core.errors import DeviceError, Origin
from speechmeter.core.machine import HOST_VARIABLE
from speechmeter.core.outputs import SpeechFiles, TraceOptions
from speechmeter.core.types import Case, Limits, Skip
from speechmeter.launch.offline import VARIABLES

_OTHER_KIND = "is not of kind"


@dataclass(frozen=True, kw_only=True)
class Node:
    """A machine as the cluster declares it. `kinds` are the names by which a plan can request it."""

    id: str
    name: str
    cpus: int
    gpus: int = 0
    memory_bytes: int = 0
    kinds: frozenset[str] = frozenset()

    @property
    def alike(self) -> tuple[Any, ...]:
        """Equal for machines of the same kind: if one is lost, another of them may take over."""
        return (self.kinds, self.cpus, self.gpus)


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A node that answered: its name in records, its cores, and the cases that it cannot measure, with the reason.

    `unfit` says why it can measure nothing at all.
    """

    node: Node
    host: str
    cores: tuple[int, ...] = ()
    absent: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    unfit: str = ""


@dataclass(frozen=True, kw_only=True)
class Lane:
    """A device on which one measurement runs at a time: all cores of a machine, or a GPU with a part of them."""

    number: int
    machine: Machine
    cores: tuple[int, ...]
    cpus: int
    gpus: int = 0
    memory_bytes: int = 0

    @property
    def key(self) -> str:
        """For records: the host, and which of the run's lanes it is."""
        return f"{self.machine.host}:{self.number}"


@dataclass(frozen=True, kw_only=True)
class Lost:
    """A measurement that will give no answer: its process or machine is gone, perhaps before it `began`."""

    reason: str
    began: bool = True


Answer = Mapping[str, Any] | Lost


class Cluster(Protocol):
    """Connects the machines of a run. A lane has at most one measurement in progress."""

    def nodes(self) -> list[Node]:
        """The machines that are connected now."""
        ...

    def survey(self, nodes: Sequence[Node], question: Mapping[str, Any]) -> list[Answer]:
        """Call `node.survey` on each machine, all at once; the answers are in the order of the nodes."""
        ...

    def submit(self, lane: Lane, setting: Mapping[str, Any], order: Mapping[str, Any]) -> None:
        """Start a measurement on a lane; its device is reserved for this run from now on."""
        ...

    def wait(self, timeout_s: float) -> list[tuple[int, Answer]]:
        """(number of the lane, answer) of the measurements that ended; empty after the timeout."""
        ...

    def call(self, lane: Lane, setting: Mapping[str, Any], method: str, *given: Any) -> Any:
        """What a method of the lane's `node.Worker` returns. Raises CannotGoOnError if the worker is lost."""
        ...

    def release(self, lane: Lane) -> None:
        """Release the lane's device; no process of this run is left on it."""
        ...


@dataclass(frozen=True, kw_only=True)
class Requirements:
    """What a study needs from machines. `kinds` maps a device (`cpu`, `cuda`) to the kind of machine it must be on.

    `origin` says where in the plan a key of a case was written.
    """

    cases: Sequence[Case]
    limits: Limits = field(default_factory=Limits)
    kinds: Mapping[str, str] = field(default_factory=dict)
    offline: bool = False
    speech: SpeechFiles | None = None
    trace: TraceOptions = field(default_factory=TraceOptions)
    origin: Callable[[Case, str], Origin | None] = lambda case, key: None

    def setting(self) -> dict[str, Any]:
        """What every machine needs to know, as plain data."""
        return {
            "folder": str(Path.cwd()),
            "environ": {key: "1" for key in VARIABLES if self.offline or os.environ.get(key) == "1"},
            "limits": asdict(self.limits),
            "speech": None if self.speech is None else asdict(self.speech),
            "trace": asdict(self.trace),
        }

    def memory_bytes(self, case: Case) -> int:
        """The main memory to reserve for a case; on a GPU the limit is on the GPU's own memory."""
        return int((self.limits.memory_gib or 0) * 2**30) if case.device.is_cpu else 0

    def obstacle(self, machine: Machine, case: Case) -> str | None:
        """Why a machine cannot measure a case; None when it can."""
        node, kind = machine.node, self.kinds.get(case.device.kind)
        cores = min(node.cpus, len(machine.cores))
        if kind is not None and kind not in node.kinds:
            return f"{_OTHER_KIND} {kind!r}"
        if case.device.is_cuda and not node.gpus:
            return "has no GPU"
        if case.axes.cores > cores:
            return f"has {cores} cores, and the case needs {case.axes.cores}"
        if self.memory_bytes(case) > node.memory_bytes:
            return (
                f"limits.memory_gib is {self.limits.memory_gib:g}, and the machine has "
                f"{node.memory_bytes / 2**30:.1f} GiB of memory"
            )
        return machine.unfit or machine.refused.get(case.id) or machine.absent.get(case.id)


@dataclass(frozen=True, kw_only=True)
class Machines:
    """The machines of a cluster that answered, and the cases whose packages none of them has."""

    cluster: Cluster
    requirements: Requirements
    machines: tuple[Machine, ...]
    absent: tuple[Skip, ...]


def find_machines(cluster: Cluster, requirements: Requirements) -> Machines:
    """Ask every machine about every case. Raises DeviceError for unfit machines, and for a case that fits none."""
    machines = ask(cluster, requirements, cluster.nodes())
    if not machines:
        raise DeviceError(
            "no machine of this cluster offers CPU cores, so none can measure",
            key="launcher",
            fix="add one with `ray start --address=…`",
        )
    for machine in machines:
        if machine.unfit:
            raise DeviceError(
                f"{machine.host} cannot measure: {machine.unfit}",
                key="launcher",
                fix="install the same Speechmeter there, or take that machine out of the cluster",
            )
    host, times = Counter(machine.host for machine in machines).most_common(1)[0]
    if times > 1:
        raise DeviceError(
            f"{times} machines of this cluster are named {host!r}, so their records cannot be distinguished",
            key="launcher",
            fix=f"set {HOST_VARIABLE} to a different name on each before `ray start`",
        )
    absent = []
    for case in requirements.cases:
        reasons = {machine.host: requirements.obstacle(machine, case) for machine in machines}
        if all(reasons.values()):
            absent.append(Skip(case=case, reason=_missing_package(case, machines, requirements)))
    if requirements.cases and len(absent) == len(requirements.cases):
        where = requirements.origin(absent[0].case, "models")
        raise DeviceError(absent[0].reason, where=where, fix="install it on a machine of the cluster")
    return Machines(cluster=cluster, requirements=requirements, machines=tuple(machines), absent=tuple(absent))


def ask(cluster: Cluster, requirements: Requirements, nodes: Sequence[Node]) -> list[Machine]:
    """The answers of those nodes that could measure anything: the ones that declare cores or GPUs."""
    nodes = [node for node in nodes if node.cpus >= 1]
    cases = [case.to_json() for case in requirements.cases]
    machines: dict[str, Machine] = {}
    for has_gpu in (False, True):
        group = [node for node in nodes if bool(node.gpus) == has_gpu]
        # A survey is given no GPU and so sees none, while a measurement on a machine with GPUs will see one.
        question = {**requirements.setting(), "cases": cases, "gpus": int(has_gpu)}
        for node, answer in zip(group, cluster.survey(group, question) if group else (), strict=True):
            if isinstance(answer, Lost):
                machines[node.id] = Machine(node=node, host=node.name, unfit=answer.reason)
                continue
            theirs, here = answer["version"], version("speechmeter")
            machines[node.id] = Machine(
                node=node,
                host=answer["host"],
                cores=tuple(answer["cores"]),
                absent=answer["absent"],
                refused=answer["refused"],
                unfit="" if theirs == here else f"it has Speechmeter {theirs}, this machine has {here}",
            )
    return [machines[node.id] for node in nodes]


def _missing_package(case: Case, machines: Sequence[Machine], requirements: Requirements) -> str:
    """The package that all machines lack. Raises DeviceError where it is not a package but a device or a file."""
    reasons = {machine.host: requirements.obstacle(machine, case) or "" for machine in machines}
    for machine in machines:
        if reasons[machine.host] == machine.absent.get(case.id):
            return machine.absent[case.id]
    listed = "; ".join(f"{host}: {reason}" for host, reason in list(reasons.items())[:3])
    more = f"; and {len(reasons) - 3} more" if len(reasons) > 3 else ""
    key = "kind" if all(reason.startswith(_OTHER_KIND) for reason in reasons.values()) else "device"
    raise DeviceError(
        f"no machine of this cluster can measure {case.label} ({listed}{more})",
        where=requirements.origin(case, key),
        key=key,
        fix="change device, cores, kind or limits, or add a machine that has what the case needs",
    )
