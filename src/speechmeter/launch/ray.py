"""Ray as the cluster: it reserves devices, pins GPUs, transfers data, and notices losses. It measures nothing."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from time import monotonic
from typing import Any

from speechmeter.core.errors import CannotGoOnError, InputError
from speechmeter.core.files import draft_folder
from speechmeter.core.machine import available_cores, kib_field
from speechmeter.launch.cluster import Answer, Lane, Lost, Node
from speechmeter.launch.node import Worker, survey
from speechmeter.launch.offline import environ_set
from speechmeter.launch.ray_head import HeadCheck, check_answers, other_head, own_head

_LONGEST_FOLDER = 27
"""Of the folder for temporary files: what we and Ray add to it for a socket is up to 80 characters."""
_ANSWER_S = 120.0
_LOOK_S = 1.0
"""How often the head is looked after while something is waited for."""
_OBJECT_STORE_BYTES = 256 * 2**20
_OWN = {
    "RAY_AUTH_MODE": "token",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_memory_monitor_refresh_ms": "0",  # memory is limited by us, and a case that is over becomes a record
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # the one setting by which Ray listens on the loopback address alone
}
"""Variables of a cluster that we start, handed down to all of its processes."""
_ACCELERATOR = "accelerator_type:"
_NOT_KINDS = ("CPU", "GPU", "memory", "object_store_memory")


@contextmanager
def opened(address: str | None) -> Iterator[RayCluster]:
    """The cluster at an address (`auto`: the one that this machine is in), or one of this machine alone.

    The latter is started for the `with` block, with a token of its own. Raises InputError without Ray, and where no
    cluster answers.
    """
    if find_spec("ray") is None:
        raise InputError("Ray is not installed", key="launcher", fix="pip install 'speechmeter[ray]'")
    if address is not None and address.startswith("ray://"):
        raise InputError(
            "`ray://` is not supported: the machine that starts a run must be in the cluster",
            key="address",
            fix="join the cluster with `ray start --address=HOST:PORT --num-cpus=0`, and use `address: auto`",
        )
    if address is not None:
        check_answers(os.environ.get("RAY_ADDRESS", address) if address == "auto" else address)
    try:
        with environ_set({} if address else {**_OWN, "RAY_AUTH_TOKEN": secrets.token_hex(32)}):
            yield from _cluster(address)
    finally:
        _read_environ_again()


def _cluster(address: str | None) -> Iterator[RayCluster]:
    handler = signal.getsignal(signal.SIGTERM)
    with contextlib.nullcontext(Path()) if address else _short_folder() as folder:
        ray = _connected(address, folder)
        with contextlib.suppress(ValueError):  # Ray takes the signal over; only a main thread may take it back
            signal.signal(signal.SIGTERM, handler)
        try:
            if address is None:
                _check_loopback(ray)
            yield RayCluster(ray, other_head(ray.get_runtime_context().gcs_address) if address else own_head(ray))
        finally:
            ray.shutdown()


def _check_loopback(ray: Any) -> None:
    """Raise InputError where a cluster of ours can be reached from other machines: a Ray that knows another setting."""
    addresses = {str(node["NodeManagerAddress"]) for node in ray.nodes()}
    if not all(ip_address(address).is_loopback for address in addresses):
        raise InputError(
            f"Ray {ray.__version__} listens on {', '.join(sorted(addresses))} and not only on this machine",
            key="launcher",
            fix="start a cluster yourself (see docs/howto/cluster.md), and set `address`",
        )


def _short_folder() -> AbstractContextManager[Path]:
    """A folder for sockets and logs of a cluster, readable by us alone, removed afterwards.

    The path of a socket has 107 characters at most.
    """
    usual = tempfile.gettempdir()
    return draft_folder(Path(usual if len(usual) <= _LONGEST_FOLDER else "/tmp"), prefix="smray-")


def _connected(address: str | None, folder: Path) -> Any:
    """Ray, as the driver of a cluster; `folder` is for the logs of one that we start."""
    if address is None and "ray" in sys.modules and sys.modules["ray"].is_initialized():
        raise InputError(
            "Ray is already running in this process",
            key="launcher",
            fix="call ray.shutdown() first, or set `address` to the cluster",
        )
    import ray

    _read_environ_again()
    constants = ray._private.ray_constants
    before = getattr(constants, "ENABLE_RAY_CLUSTER", True)
    quiet = {"log_to_driver": False, "configure_logging": False, "logging_level": "ERROR"}
    try:
        if address is not None:
            ray.init(address=address, **quiet)
        else:
            constants.ENABLE_RAY_CLUSTER = False  # Ray read it when it was imported, perhaps long ago
            (folder / "r").mkdir()  # Ray makes it readable for all; the folder around it is ours alone
            ray.init(
                address="local",
                num_cpus=len(available_cores()),
                _memory=kib_field("/proc/meminfo", "MemTotal"),
                object_store_memory=_OBJECT_STORE_BYTES,
                include_dashboard=False,
                _temp_dir=str(folder / "r"),
                **quiet,
            )
    except (ConnectionError, RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
        raise InputError(
            f"cannot connect to a Ray cluster at {address}: {_first_line(error)}"
            if address
            else f"cannot start Ray on this machine: {_first_line(error)}",
            key="address" if address else "launcher",
            fix="`ray status` shows whether a cluster runs; to start one, see docs/howto/cluster.md",
        ) from error
    finally:
        constants.ENABLE_RAY_CLUSTER = before
    return ray


def _read_environ_again() -> None:
    """Ray keeps the mode and token that it found when it was imported: without this a second cluster has neither."""
    with contextlib.suppress(ImportError, AttributeError):
        from ray._raylet import AuthenticationTokenLoader, Config

        Config.initialize("")
        AuthenticationTokenLoader.instance().reset_cache()


class RayCluster:
    """A `Cluster` of Ray. A lane is an actor that holds its device; it ends when the lane is released or we end."""

    def __init__(self, ray: Any, head_gone: HeadCheck = lambda: None) -> None:
        self._ray = ray
        self._head_gone = head_gone
        self._actors: dict[int, Any] = {}
        self._running: dict[Any, int] = {}

    def nodes(self) -> list[Node]:
        """The machines that are alive."""
        self._check_head()
        return [_node(entry) for entry in self._ray.nodes() if entry["Alive"]]

    def survey(self, nodes: Sequence[Node], question: Mapping[str, Any]) -> list[Answer]:
        """The answer of each machine; one that does not answer within two minutes is lost."""
        task = self._ray.remote(num_cpus=0, max_retries=0)(survey)
        refs = [task.options(scheduling_strategy=self._on(node.id)).remote(dict(question)) for node in nodes]
        self._ended(refs, len(refs), _ANSWER_S)
        return [self._answer(ref, 0.1) for ref in refs]

    def submit(self, lane: Lane, setting: Mapping[str, Any], order: Mapping[str, Any]) -> None:
        """Start a measurement; the device is reserved first, and kept."""
        self._check_head()
        self._running[self._actor(lane, setting).measure.remote(dict(order))] = lane.number

    def _actor(self, lane: Lane, setting: Mapping[str, Any]) -> Any:
        if lane.number not in self._actors:
            remote = self._ray.remote(Worker).options(
                num_cpus=lane.cpus,
                num_gpus=lane.gpus,
                memory=lane.memory_bytes or None,
                max_restarts=0,
                scheduling_strategy=self._on(lane.machine.node.id),
            )
            self._actors[lane.number] = remote.remote(dict(setting))
        return self._actors[lane.number]

    def wait(self, timeout_s: float) -> list[tuple[int, Answer]]:
        """The measurements that ended; after a loss the next measurement of the lane starts with a new actor."""
        ended = []
        for ref in self._ended(list(self._running), 1, timeout_s):
            number, answer = self._running.pop(ref), self._answer(ref, _ANSWER_S)
            if isinstance(answer, Lost):
                self._drop(number)
            ended.append((number, answer))
        return ended

    def call(self, lane: Lane, setting: Mapping[str, Any], method: str, *given: Any) -> Any:
        """What a method of the lane's worker returns, however long it takes. Raises CannotGoOnError if it is lost."""
        self._check_head()
        ref = getattr(self._actor(lane, setting), method).remote(*given)
        while not self._ended([ref], 1, _LOOK_S):
            pass
        try:
            return self._ray.get(ref)
        except self._ray.exceptions.RayError as error:
            raise CannotGoOnError(f"{lane.machine.host}: {_first_line(error)}; use `resume` to continue") from None

    def release(self, lane: Lane) -> None:
        """Release the device."""
        self._drop(lane.number)

    def _drop(self, number: int) -> None:
        actor = self._actors.pop(number, None)
        if actor is not None and self._head_gone() is None:
            with contextlib.suppress(Exception):  # it may be gone already
                self._ray.kill(actor)

    def _ended(self, refs: Sequence[Any], count: int, timeout_s: float) -> list[Any]:
        """Those of the refs that are ready, once `count` of them are or the time is over. The head is watched."""
        deadline = monotonic() + timeout_s
        while refs:
            self._check_head()
            left_s = max(0.0, deadline - monotonic())
            ready, _ = self._ray.wait(list(refs), num_returns=count, timeout=min(_LOOK_S, left_s))
            if len(ready) >= count or left_s <= _LOOK_S:
                return list(ready)
        return []

    def _check_head(self) -> None:
        """Raise CannotGoOnError when the head is gone: Ray would wait a minute, and then end this process."""
        why = self._head_gone()
        if why is not None:
            raise CannotGoOnError(f"{why}; use `resume` to continue")

    def _answer(self, ref: Any, timeout_s: float) -> Answer:
        errors = self._ray.exceptions
        try:
            answer: Mapping[str, Any] = self._ray.get(ref, timeout=timeout_s)
        except errors.GetTimeoutError:
            return Lost(reason=f"no answer within {_ANSWER_S:g} s")
        except (errors.ActorUnschedulableError, errors.TaskUnschedulableError) as error:
            return Lost(reason=_first_line(error), began=False)
        except errors.RayError as error:
            return Lost(reason=_first_line(error))
        return answer

    def _on(self, node_id: str) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return NodeAffinitySchedulingStrategy(node_id, soft=False)


def _node(entry: Mapping[str, Any]) -> Node:
    resources: Mapping[str, float] = entry["Resources"]
    named = {key for key in resources if key not in _NOT_KINDS and not key.startswith("node:")}
    return Node(
        id=entry["NodeID"],
        name=entry["NodeManagerHostname"],
        cpus=int(resources.get("CPU", 0)),
        gpus=int(resources.get("GPU", 0)),
        memory_bytes=int(resources.get("memory", 0)),
        kinds=frozenset(key.removeprefix(_ACCELERATOR) for key in named),
    )


def _first_line(error: BaseException) -> str:
    """The message of an exception in one line: of a remote error the last line, which names it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    return (lines[-1] if "Traceback" in str(error) else lines[0])[:300]
