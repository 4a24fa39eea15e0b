"""Which machine of a cluster may measure which case. What fits nowhere is refused before anything is written."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from speechmeter.core.errors import DeviceError
from speechmeter.core.machine import HOST_VARIABLE
from speechmeter.core.outputs import SpeechFiles, TraceOptions
from speechmeter.core.types import Case, Limits, Skip
from speechmeter.launch.cluster import Cluster, Lost, Member, Node
from speechmeter.launch.offline import VARIABLES
from speechmeter.launch.preflight import Place


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What a study asks of machines. `kinds` maps a device (`cpu`, `cuda`) to the kind of machine it must be on."""

    cases: Sequence[Case]
    limits: Limits = field(default_factory=Limits)
    kinds: Mapping[str, str] = field(default_factory=dict)
    offline: bool = False
    speech: SpeechFiles | None = None
    trace: TraceOptions = field(default_factory=TraceOptions)
    place: Place = lambda case, key: None

    def setting(self) -> dict[str, Any]:
        """What every machine is told, as plain data."""
        return {
            "folder": str(Path.cwd()),
            "environ": {key: "1" for key in VARIABLES if self.offline or os.environ.get(key) == "1"},
            "limits": asdict(self.limits),
            "speech": None if self.speech is None else asdict(self.speech),
            "trace": asdict(self.trace),
        }


@dataclass(frozen=True, kw_only=True)
class Crew:
    """The machines of a cluster that answered, and the cases that none of them has the packages for."""

    cluster: Cluster
    wishes: Wishes
    members: tuple[Member, ...]
    absent: tuple[Skip, ...]


def muster(cluster: Cluster, wishes: Wishes) -> Crew:
    """Ask every machine about every case. Raises DeviceError for a case that fits none, and for unfit machines."""
    members = ask(cluster, wishes, cluster.nodes())
    if not members:
        raise DeviceError("no machine of this cluster has cores to measure on", where="--launcher ray", fix=_JOIN)
    _check_members(members)
    absent = []
    for case in wishes.cases:
        reasons = {member.host: obstacle_at(member, case, wishes) for member in members}
        if all(reasons.values()):
            absent.append(Skip(case=case, reason=_absent_everywhere(case, members, wishes)))
    if wishes.cases and len(absent) == len(wishes.cases):
        raise DeviceError(absent[0].reason, where=wishes.place(absent[0].case, "models"), fix="install it there")
    return Crew(cluster=cluster, wishes=wishes, members=tuple(members), absent=tuple(absent))


_JOIN = "add one with `ray start --address=…`"
_OTHER_KIND = "is not of kind"


def ask(cluster: Cluster, wishes: Wishes, nodes: Sequence[Node]) -> list[Member]:
    """What those machines answer that could measure anything: the ones that declare cores or GPUs."""
    nodes = [node for node in nodes if node.cpus >= 1]
    cases = [case.to_json() for case in wishes.cases]
    # A process that was given no GPU sees none. What the cluster declares is what a measurement will see: one.
    questions = {bool(node.gpus): {**wishes.setting(), "cases": cases, "gpus": min(1, node.gpus)} for node in nodes}
    members: dict[str, Member] = {}
    for has_gpu, question in questions.items():
        group = [node for node in nodes if bool(node.gpus) == has_gpu]
        for node, answer in zip(group, cluster.survey(group, question), strict=True):
            members[node.id] = _member(node, answer)
    return [members[node.id] for node in nodes]


def _member(node: Node, answer: Mapping[str, Any] | Lost) -> Member:
    if isinstance(answer, Lost):
        return Member(node=node, host=node.name, unfit=answer.reason)
    member = Member(
        node=node,
        host=answer["host"],
        cores=tuple(answer["cores"]),
        absent=answer["absent"],
        refused=answer["refused"],
    )
    if answer["version"] != (here := version("speechmeter")):
        return replace(member, unfit=f"it has Speechmeter {answer['version']}, this one is {here}")
    return member


def _check_members(members: Sequence[Member]) -> None:
    for member in members:
        if member.unfit:
            raise DeviceError(
                f"{member.host} cannot measure: {member.unfit}",
                where="--launcher ray",
                fix="install the same Speechmeter there, or take that machine out of the cluster",
            )
    host, times = Counter(member.host for member in members).most_common(1)[0]
    if times > 1:
        raise DeviceError(
            f"{times} machines of this cluster are called {host!r}: records could not tell them apart",
            where="--launcher ray",
            fix=f"set {HOST_VARIABLE} to a name of its own for each before `ray start`",
        )


def obstacle_at(member: Member, case: Case, wishes: Wishes) -> str | None:
    """Why a machine cannot measure a case; None when it can."""
    node, kind = member.node, wishes.kinds.get(case.device.kind)
    if kind is not None and kind not in node.kinds:
        return f"{_OTHER_KIND} {kind!r}"
    if case.device.is_cuda and not node.gpus:
        return "has no GPU"
    if case.axes["cores"] > min(node.cpus, len(member.cores)):
        return f"cores: {case.axes['cores']} asked, {min(node.cpus, len(member.cores))} there"
    if memory_of(case, wishes.limits) > node.memory_bytes:
        return f"limits.memory_gib: {wishes.limits.memory_gib:g} asked, {node.memory_bytes / 2**30:.1f} GiB there"
    return member.unfit or member.refused.get(case.id) or member.absent.get(case.id)


def memory_of(case: Case, limits: Limits) -> int:
    """The main memory that is reserved for a case, in bytes; on a GPU the limit is on the GPU's own."""
    return int((limits.memory_gib or 0) * 2**30) if case.device.is_cpu else 0


def _absent_everywhere(case: Case, members: Sequence[Member], wishes: Wishes) -> str:
    """The reason why nobody has it. Raises DeviceError where it is not a package that lacks but a device or a file."""
    told = {member.host: obstacle_at(member, case, wishes) or "" for member in members}
    lacking = [member.absent[case.id] for member in members if told[member.host] == member.absent.get(case.id)]
    if lacking:
        return lacking[0]
    reasons = "; ".join(f"{host}: {reason}" for host, reason in list(told.items())[:3])
    more = f"; and {len(told) - 3} more" if len(told) > 3 else ""
    key = "kind" if all(reason.startswith(_OTHER_KIND) for reason in told.values()) else "device"
    raise DeviceError(
        f"{case.label} fits no machine of this cluster ({reasons}{more})",
        where=wishes.place(case, key),
        fix="change device, cores, kind or limits, or add a machine that has it",
    )
