"""The parts of the Ray launcher that need no cluster; `tests/campaign/test_cluster.py` has a real one."""

import os
import sys

import pytest

from speechmeter.core.errors import InputError
from speechmeter.launch import ray as launcher


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

    assert launcher._first_line(Died("The actor died.\n\tclass_name: Bench")) == "The actor died."
    assert launcher._first_line(Died("x\nTraceback (most recent call last):\nModuleNotFoundError: no y")).endswith(
        "no y"
    )
    assert launcher._first_line(Died()) == "Died"


def test_variables_are_as_before_afterwards(monkeypatch):
    monkeypatch.setenv("SPEECHMETER_TEST_A", "old")
    with launcher._environ({"SPEECHMETER_TEST_A": "new", "SPEECHMETER_TEST_B": "new"}):
        assert (os.environ["SPEECHMETER_TEST_A"], os.environ["SPEECHMETER_TEST_B"]) == ("new", "new")
    assert os.environ["SPEECHMETER_TEST_A"] == "old"
    assert "SPEECHMETER_TEST_B" not in os.environ
