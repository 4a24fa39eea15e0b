"""Machines that measure for one run, whoever connects them: what they are, and what can be asked of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, kw_only=True)
class Node:
    """A machine as the cluster declares it. `kinds` are the names by which a plan may ask for it."""

    id: str
    name: str
    cpus: int
    gpus: int = 0
    memory_bytes: int = 0
    kinds: frozenset[str] = frozenset()

    @property
    def alike(self) -> tuple[Any, ...]:
        """What machines of the same kind share: another one may take over where this one is lost."""
        return (self.kinds, self.cpus, self.gpus)


@dataclass(frozen=True, kw_only=True)
class Member:
    """A machine that answered: its name in records, its cores, and the cases that it cannot measure, with the reason.

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
    member: Member
    cores: tuple[int, ...]
    cpus: int
    gpus: int = 0
    memory_bytes: int = 0

    @property
    def name(self) -> str:
        """For messages."""
        return self.member.host

    @property
    def key(self) -> str:
        """For records: the host, and which of the run's lanes it is."""
        return f"{self.member.host}:{self.number}"


@dataclass(frozen=True, kw_only=True)
class Lost:
    """A measurement of which no answer will come: the process or the machine is gone, perhaps before it `began`."""

    reason: str
    began: bool = True


Answer = Mapping[str, Any] | Lost


class Cluster(Protocol):
    """What a run asks of whoever connects the machines. A lane has at most one measurement under way."""

    def nodes(self) -> list[Node]:
        """The machines that are there now."""
        ...

    def survey(self, nodes: Sequence[Node], question: Mapping[str, Any]) -> list[Answer]:
        """Ask `node.survey` of each machine, all at once; answers in their order."""
        ...

    def submit(self, lane: Lane, setting: Mapping[str, Any], order: Mapping[str, Any]) -> None:
        """Begin a measurement on a lane; its device is reserved for this run from now on."""
        ...

    def wait(self, timeout_s: float) -> list[tuple[int, Answer]]:
        """(number of the lane, answer) of the measurements that ended; empty when the time is over."""
        ...

    def release(self, lane: Lane) -> None:
        """Give the lane's device back; nothing of this run is left on it."""
        ...
