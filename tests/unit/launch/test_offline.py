"""In an offline run Python's sockets reach this machine alone, and everything is as before afterwards."""

import os
import socket

import pytest

from speechmeter.launch.offline import OfflineError, environ_set, is_offline, offline

ELSEWHERE = ("192.0.2.1", 9)  # an address for documentation: nobody has it
VARIABLES = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE", "SPEECHMETER_OFFLINE")


def reach(how):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM if how.startswith("send") else socket.SOCK_STREAM) as one:
        one.settimeout(0.2)
        if how == "sendto":
            one.sendto(b"x", ELSEWHERE)
        elif how == "sendmsg":
            one.sendmsg([b"x"], [], 0, ELSEWHERE)
        else:
            getattr(one, how)(ELSEWHERE)


@pytest.mark.parametrize("how", ["connect", "connect_ex", "sendto", "sendmsg"])
def test_no_socket_reaches_another_machine(how):
    with offline(True), pytest.raises(OfflineError, match=r"this run is offline, so .* cannot be reached; run without"):
        reach(how)


def test_no_name_is_looked_up():
    with offline(True):
        with pytest.raises(OfflineError, match="cannot be reached"):
            socket.create_connection(("huggingface.co", 443), timeout=1)
        assert socket.getaddrinfo("localhost", 80)


def test_libraries_of_models_are_told_and_so_are_measuring_processes(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    for name in VARIABLES[1:]:
        monkeypatch.delenv(name, raising=False)
    assert not is_offline()
    with offline(True):
        assert [os.environ[name] for name in VARIABLES] == ["1"] * 4
        assert is_offline()
    assert os.environ["HF_HUB_OFFLINE"] == "0"
    assert not any(name in os.environ for name in VARIABLES[1:])


def test_this_machine_stays_within_reach():
    with offline(True), socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname(), timeout=5) as one:
            one.sendall(b"x")
        left, right = socket.socketpair()
        left.close(), right.close()


def test_everything_is_as_it_was_afterwards():
    before = {name: getattr(socket.socket, name) for name in ("connect", "connect_ex", "sendto", "sendmsg")}
    look_up = socket.getaddrinfo
    with offline(True):
        assert socket.socket.connect is not before["connect"]
    assert {name: getattr(socket.socket, name) for name in before} == before
    assert socket.getaddrinfo is look_up
    with offline(False):
        assert socket.socket.connect is before["connect"]


def test_variables_are_as_before_afterwards(monkeypatch):
    monkeypatch.setenv("SPEECHMETER_TEST_A", "old")
    with environ_set({"SPEECHMETER_TEST_A": "new", "SPEECHMETER_TEST_B": "new"}):
        assert (os.environ["SPEECHMETER_TEST_A"], os.environ["SPEECHMETER_TEST_B"]) == ("new", "new")
    assert os.environ["SPEECHMETER_TEST_A"] == "old"
    assert "SPEECHMETER_TEST_B" not in os.environ
