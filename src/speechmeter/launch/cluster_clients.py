"""Clients on the machines of a cluster: each machine holds its share of the streams of a round, one round at a time."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Any

from speechmeter.core.errors import InputError, StoreError
from speechmeter.core.outputs import Keep
from speechmeter.core.types import Case
from speechmeter.engine.measure import Outcome
from speechmeter.launch.child import outcome_from_json
from speechmeter.launch.clients import ClientResult, clients_of, hold_together, merged
from speechmeter.launch.cluster import Cluster, Lane, Machines
from speechmeter.launch.cluster_run import lanes_of
from speechmeter.launch.executors import Extent
from speechmeter.launch.node import unpack
from speechmeter.store.exchanges import exchange_file

_COMPARISONS = 20
"""How often a clock is asked for: the shortest exchange says most."""


class ClusterClients:
    """An executor: the clients of a case are on as many machines, in the order in which these answered."""

    def __init__(self, machines: Machines, keep: Keep) -> None:
        self._machines, self._keep = machines, keep
        self._lanes: list[Lane] = []
        for machine in machines.machines:
            found = lanes_of(machine, machines.requirements, len(self._lanes))
            self._lanes += [lane for lane in found if not lane.gpus]

    def close(self) -> None:
        """Release every machine."""
        for lane in self._lanes:
            self._machines.cluster.release(lane)

    def measure(self, case: Case, report: Callable[[str], None], extent: Extent = "all", round_: int = 0) -> Outcome:
        """One round, held by all of its clients together."""
        obstacle = self._machines.requirements.obstacle
        able = [lane for lane in self._lanes if obstacle(lane.machine, case) is None][: clients_of(case)]
        report(f"on {', '.join(lane.machine.host for lane in able)}")
        clients = [
            _RemoteClient(self._machines, lane, case, {"round": round_, "index": index, "of": len(able)})
            for index, lane in enumerate(able)
        ]
        return merged(case, round_, hold_together(clients), self._keep)


def check_clients(machines: Machines) -> None:
    """Raise InputError where the cases of a run cannot be held by clients on these machines."""
    requirements = machines.requirements
    for case in requirements.cases:
        if case.live is None or case.live.clients == 1:
            raise InputError(
                f"{case.label} has a single client, and others have several",
                key="clients",
                fix="measure cases that are not live, or have one client, in a run of their own",
            )
        able = [machine for machine in machines.machines if requirements.obstacle(machine, case) is None]
        if len(able) < case.live.clients:
            raise InputError(
                f"{case.live.clients} clients need as many machines, and {len(able)} of this cluster can measure "
                f"{case.label}",
                key="clients",
                fix=f"use `clients: {len(able)}`, add a machine, or use `launcher: subprocess`",
            )


class _RemoteClient:
    """A client on another machine, whose clock is compared with ours before it begins."""

    def __init__(self, machines: Machines, lane: Lane, case: Case, order: Mapping[str, Any]) -> None:
        self._cluster: Cluster = machines.cluster
        self._lane, self._file = lane, f"{case.id}/{exchange_file(order['round'])}"
        self._setting = {**machines.requirements.setting(), "cores": list(lane.cores)}
        self._clock, self._offset_s = "", 0.0
        self._call("start_client", {**order, "case": case.to_json()})

    def is_ready(self) -> bool:
        """Whether it waits for the common start, or has ended. Its clock is compared when it is."""
        if not self._clock and self._call("client_is_ready"):
            self._compare_clocks()
        return bool(self._clock)

    def begin(self, moment_s: float) -> None:
        """Tell it the moment on its own clock."""
        self._call("begin", moment_s + self._offset_s)

    def result(self) -> ClientResult:
        """What it measured; waits for its end."""
        answer = self._call("client_result")
        outcome = outcome_from_json(answer["outcome"])
        with tempfile.TemporaryDirectory(prefix="speechmeter-clients-") as folder:
            with suppress(StoreError):
                unpack(answer["files"], Path(folder))
            return ClientResult.of(outcome, Path(folder) / self._file, self._clock)

    def stop(self) -> None:
        """Its worker goes, and with it everything that it started."""
        self._cluster.release(self._lane)

    def _compare_clocks(self) -> None:
        """Its clock minus ours, from the shortest exchange; half of that is how far it may be wrong."""
        found = []
        for _ in range(_COMPARISONS):
            before_s = perf_counter()
            theirs_s = self._call("clock")
            after_s = perf_counter()
            found.append(((after_s - before_s) / 2, theirs_s - (before_s + after_s) / 2))
        within_s, self._offset_s = min(found)
        host, within_ms = self._lane.machine.host, within_s * 1e3
        self._clock = f"{host} (its clock is {self._offset_s:+.6f} s from ours, within {within_ms:.2g} ms)"

    def _call(self, method: str, *given: Any) -> Any:
        return self._cluster.call(self._lane, self._setting, method, *given)
