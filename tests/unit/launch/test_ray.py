"""The parts of the Ray launcher that need no cluster; `tests/campaign/test_cluster.py` has a real one."""

import socket
import sys
import threading
from contextlib import contextmanager

import pytest

from speechmeter.core.errors import CannotGoOnError, InputError
from speechmeter.launch import ray as launcher
from speechmeter.launch import ray_head


def test_without_ray_the_way_to_get_it_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(InputError, match=r"Ray is not installed; pip install 'speechmeter\[ray\]'"),
        launcher.opened(None),
    ):
        pass


def test_a_driver_outside_the_cluster_is_told_to_join(monkeypatch):
    pytest.importorskip("ray")
    with pytest.raises(InputError, match="ray start --address"), launcher.opened("ray://head:10001"):
        pass


@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:99999999"])
def test_an_address_at_which_nobody_listens_is_refused_at_once(address):
    pytest.importorskip("ray")
    with pytest.raises(InputError, match="no Ray cluster answers at"), launcher.opened(address):
        pass


def test_custom_resources_and_accelerators_are_kinds():
    resources = {
        "CPU": 8.0,
        "GPU": 2.0,
        "memory": 1e9,
        "object_store_memory": 1e8,
        "node:10.0.0.1": 1.0,
        "node:__internal_head__": 1.0,
        "accelerator_type:A100": 1.0,
        "rack": 1.0,
    }
    node = launcher._node({"NodeID": "n", "NodeManagerHostname": "h", "Resources": resources})
    assert (node.cpus, node.gpus, node.memory_bytes, node.kinds) == (8, 2, 10**9, {"A100", "rack"})


def test_the_reason_of_a_loss_is_one_line():
    class Died(Exception):
        pass

    assert launcher._first_line(Died("The actor died.\n\tclass_name: Worker")) == "The actor died."
    assert launcher._first_line(Died("x\nTraceback (most recent call last):\nModuleNotFoundError: no y")).endswith(
        "no y"
    )
    assert launcher._first_line(Died()) == "Died"


@contextmanager
def listening(said):
    """A server that says this to whoever comes, and nothing where it is None; its address."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        held = []

        def serve():
            while True:
                try:
                    talk, _ = server.accept()
                except OSError:
                    return
                held.append(talk)
                if said is not None:
                    talk.sendall(said)
                    talk.close()

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


SETTINGS = b"\0\0\0\4\0\0\0\0\0"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (None, "nothing within"),
        (b"", "not a Ray head|reset|pipe"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "not a Ray head"),
    ],
)
def test_a_head_that_listens_and_does_not_answer_is_refused_in_seconds(monkeypatch, said, why):
    """Ray itself goes on trying for minutes."""
    pytest.importorskip("ray")
    monkeypatch.setattr(ray_head, "CONNECT_S", 0.2)
    monkeypatch.delenv("RAY_USE_TLS", raising=False)
    with (
        listening(said) as address,
        pytest.raises(InputError, match=rf"no Ray cluster answers at '{address}': .*({why})"),
        launcher.opened(address),
    ):
        pass


def test_a_head_that_answers_is_let_in():
    with listening(SETTINGS) as address:
        ray_head.check_answers(address)


def test_an_address_of_a_head_that_is_gone_is_refused_though_ray_remembers_it(monkeypatch):
    services = pytest.importorskip("ray._private.services")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(services, "canonicalize_bootstrap_address", lambda address_, temp_dir=None: address)
    with pytest.raises(InputError, match=f"no Ray cluster answers at '{address}'"), launcher.opened("auto"):
        pass


def test_a_head_of_others_is_given_up_after_some_silence(monkeypatch):
    monkeypatch.setattr(ray_head, "_AGAIN_S", 0.0)
    answers = iter(["no", "no", None, "no", "no", "no"])
    monkeypatch.setattr(ray_head, "_unanswered", lambda address: next(answers))
    gone = ray_head.other_head("h:1")
    assert [gone() for _ in range(5)] == [None] * 5
    assert gone() == "the head at h:1 does not answer: no"


class Silent:
    """A Ray of which nothing is ever ready."""

    def __init__(self):
        self.killed = []

    def wait(self, refs, num_returns=1, timeout=None):
        return [], refs

    def kill(self, actor):
        self.killed.append(actor)

    def nodes(self):
        return []


def test_a_run_ends_when_the_head_does_and_asks_it_nothing_more(monkeypatch):
    looks = iter([None, None])
    ray = Silent()
    cluster = launcher.RayCluster(ray, lambda: next(looks, "Ray's gcs_server on this machine ended"))
    cluster._running[object()] = 1
    cluster._actors[1] = object()
    monkeypatch.setattr(launcher, "_LOOK_S", 0.001)
    with pytest.raises(CannotGoOnError, match=r"gcs_server on this machine ended; use `resume` to continue"):
        cluster.wait(60)
    with pytest.raises(CannotGoOnError):
        cluster.nodes()
    cluster._drop(1)
    assert ray.killed == []


def test_what_is_not_ready_in_time_is_waited_for_no_longer():
    cluster = launcher.RayCluster(Silent())
    assert cluster.wait(0.0) == []
    cluster._running[object()] = 1
    assert cluster.wait(0.0) == []


@pytest.mark.parametrize(("address", "good"), [("127.0.0.1", True), ("::1", True), ("192.0.2.7", False)])
def test_a_cluster_of_ours_that_others_could_reach_is_refused(address, good):
    class Ray:
        __version__ = "9.9"

        def nodes(self):
            return [{"NodeManagerAddress": address}]

    if good:
        launcher._check_loopback(Ray())
        return
    with pytest.raises(InputError, match=r"Ray 9\.9 listens on 192\.0\.2\.7 and not only on this machine"):
        launcher._check_loopback(Ray())


def test_the_folder_of_a_cluster_is_ours_alone_and_short_enough_for_sockets():
    with launcher._short_folder() as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        assert len(str(folder / "r")) + 63 <= 107
    assert not folder.exists()
