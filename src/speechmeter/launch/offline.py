"""Offline runs: model libraries are set to stay off the network, and Python's sockets reach this machine alone."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

_MARK = "SPEECHMETER_OFFLINE"
"""Measuring processes inherit it, and so know that they are offline."""
VARIABLES = (_MARK, "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE")
"""What keeps libraries, and measuring processes, off the network."""
_METHODS = ("connect", "connect_ex", "sendto", "sendmsg")
_ADDRESS_LAST = ("sendto", "sendmsg")
_FAMILIES = (socket.AF_INET, socket.AF_INET6)


class OfflineError(OSError):
    """The network was used in an offline run. An OSError, so that libraries fail as they do without a network."""


@contextmanager
def environ_set(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables of this process, for the processes that are started meanwhile."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def offline(wanted: bool) -> Iterator[None]:
    """Inside, and if wanted, nothing that is started from here uses the network."""
    if not wanted:
        yield
        return
    with environ_set(dict.fromkeys(VARIABLES, "1")):
        allow = refuse_network()
        try:
            yield
        finally:
            allow()


def is_offline() -> bool:
    """Whether this process belongs to an offline run."""
    return os.environ.get(_MARK) == "1"


def refuse_network() -> Callable[[], None]:
    """Let Python's sockets reach this machine alone, without name look-ups; returns a function that undoes it.

    C code that opens sockets of its own is not restricted.
    """
    kept: dict[str, Any] = {name: socket.socket.__dict__.get(name) for name in _METHODS}
    look_up = socket.getaddrinfo
    for name in _METHODS:
        setattr(socket.socket, name, _local_only(getattr(socket.socket, name), last=name in _ADDRESS_LAST))
    socket.getaddrinfo = _local_names(look_up)

    def allow() -> None:
        socket.getaddrinfo = look_up
        for name, method in kept.items():
            if method is None:  # inherited
                delattr(socket.socket, name)
            else:
                setattr(socket.socket, name, method)

    return allow


def _local_only(method: Callable[..., Any], *, last: bool) -> Callable[..., Any]:
    def checked(self: socket.socket, *args: Any) -> Any:
        address = args[-1 if last else 0] if args else None
        if self.family in _FAMILIES and isinstance(address, tuple) and not _is_local(address[0]):
            raise OfflineError(f"this run is offline, so {address[0]} cannot be reached; run without --offline")
        return method(self, *args)

    return checked


def _local_names(look_up: Callable[..., Any]) -> Callable[..., Any]:
    def checked(host: Any, *args: Any, **kwargs: Any) -> Any:
        if host is not None and not _is_local(host):
            raise OfflineError(f"this run is offline, so {host} cannot be reached; run without --offline")
        return look_up(host, *args, **kwargs)

    return checked


def _is_local(host: Any) -> bool:
    name = host.decode(errors="replace") if isinstance(host, bytes) else str(host)
    if name in ("", "localhost", socket.gethostname()):
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified
