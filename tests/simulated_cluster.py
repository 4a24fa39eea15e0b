"""A cluster that measures nothing: answers come in the order in which measurements were begun, unless one is lost."""

from __future__ import annotations

from speechmeter import __version__
from speechmeter.core import metrics
from speechmeter.core.types import Environment, Measurement
from speechmeter.engine.measure import Outcome
from speechmeter.launch.child import outcome_to_json
from speechmeter.launch.cluster import Lost, Node

GIB = 2**30


def node(name, *, cpus=2, gpus=0, kinds=(), memory_gib=8):
    return Node(id=f"id-{name}", name=name, cpus=cpus, gpus=gpus, memory_bytes=memory_gib * GIB, kinds=frozenset(kinds))


class SimulatedCluster:
    """`losses` says by host what happens to its measurements one after the other: "worker" or "node" dies, or nothing.

    `values` are the latencies by name of the subject, in turn; `coming` machines join once something has ended.
    """

    def __init__(self, *nodes, absent=None, refused=None, versions=None, losses=None, values=None):
        self._nodes = list(nodes)
        self._absent, self._refused, self._versions = absent or {}, refused or {}, versions or {}
        self._losses = dict(losses or {})
        self._values = values or {}
        self._running = []
        self.begun = []
        self.held = {}
        self.most_held = 0
        self.coming = []

    def nodes(self):
        return list(self._nodes)

    def survey(self, nodes, question):
        return [
            {
                "version": self._versions.get(one.name, __version__),
                "host": one.name,
                "cores": list(range(one.cpus)),
                "memory_bytes": one.memory_bytes,
                "absent": self._absent.get(one.name, {}),
                "refused": self._refused.get(one.name, {}),
            }
            for one in nodes
        ]

    def submit(self, lane, setting, order):
        assert lane.number not in [number for number, *_ in self._running], "one measurement per device at a time"
        self._reserve(lane)
        self.begun.append((lane.machine.host, order["case"]["subject"]["name"], order["case"]["axes"]["seconds"]))
        self._running.append((lane.number, lane, order))

    def _reserve(self, lane):
        self.held[lane.number] = lane
        node = lane.machine.node
        held = [other for other in self.held.values() if other.machine.node.id == node.id]
        assert sum(other.gpus for other in held) <= node.gpus
        cores = [core for other in held if other.gpus for core in other.cores]
        assert len(cores) == len(set(cores)), "GPUs of one machine share no cores"
        self.most_held = max(self.most_held, len(self.held))

    def wait(self, timeout_s):
        number, lane, order = self._running.pop(0)
        if self.coming:
            self._nodes.append(self.coming.pop())
        happens = self._losses.get(lane.machine.host, [])
        what = happens.pop(0) if happens else ""
        if what == "node":
            self._nodes = [one for one in self._nodes if one.id != lane.machine.node.id]
        if what:
            del self.held[number]
            return [(number, Lost(reason=f"the {what} died"))]
        return [(number, self._answer(lane, order))]

    def _answer(self, lane, order):
        series = self._values.get(order["case"]["subject"]["name"], [1.0])
        value = series[len(self.begun) % len(series)]
        outcome = Outcome(
            status="ok",
            measurements=(Measurement.of(metrics.LATENCY, [value]),),
            environment=Environment(facts={"host": lane.machine.host}),
        )
        return {
            "outcome": outcome_to_json(outcome),
            "host": lane.machine.host,
            "started": "",
            "wall_s": 1.0,
            "git": "",
            "files": {f"{order['case']['subject']['name']}.txt": b"made there"},
        }

    def release(self, lane):
        self.held.pop(lane.number, None)
