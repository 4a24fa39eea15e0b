"""Whether the head of a Ray cluster answers: Ray itself tries for minutes, and then ends this process."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable
from time import monotonic
from typing import Any

from speechmeter.core.errors import InputError

CONNECT_S = 5.0
_AGAIN_S = 5.0
_TRIES = 3
"""How many checks in a row may fail during a run: a head that is restarted comes back."""
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
"""How a gRPC connection begins, with empty settings. A server sends its own at once."""
_SETTINGS = 4
_NEEDED = ("gcs_server", "raylet")

HeadCheck = Callable[[], str | None]
"""Returns why the head is gone; None while it is there."""


def check_answers(address: str) -> None:
    """Raise InputError where no head answers within seconds. `auto` is the cluster that this machine is in."""
    found = address
    if address == "auto":
        from ray._private import services

        try:  # what Ray would take: it may be the address of a head which is long gone
            found = str(services.canonicalize_bootstrap_address("auto"))
        except (ConnectionError, ValueError, OSError, RuntimeError) as error:
            raise InputError(
                "no Ray cluster runs on this machine",
                key="address",
                fix="start one with `ray start`, or use HOST:PORT of one as the address",
            ) from error
    why = _unanswered(found)
    if why is not None:
        raise InputError(
            f"no Ray cluster answers at {found!r}: {why}",
            key="address",
            fix="start one with `ray start --head --port=6379`, and use HOST:6379 as the address",
        )


def _unanswered(address: str) -> str | None:
    """Why no gRPC server answers at an address; None where one does."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S) as talk:
            if os.environ.get("RAY_USE_TLS", "0").lower() not in ("0", "false", ""):
                return None  # its answer is encrypted
            talk.sendall(_HELLO)
            said = talk.recv(9)
    except TimeoutError:
        return f"nothing within {CONNECT_S:g} s"
    except (OSError, ValueError, OverflowError) as error:
        return str(error)
    return None if len(said) > 3 and said[3] == _SETTINGS else "the program that listens there is not a Ray head"


def own_head(ray: Any) -> HeadCheck:
    """Watches the processes of a cluster that we started."""

    def gone() -> str | None:
        with contextlib.suppress(AttributeError):  # internals of Ray, which may change
            dead = {str(kind) for kind, _ in ray._private.worker._global_node.dead_processes()}
            ended = sorted(dead.intersection(_NEEDED))
            return f"Ray's {' and '.join(ended)} on this machine ended" if ended else None
        return None

    return gone


def other_head(address: str) -> HeadCheck:
    """Connects every few seconds to a cluster that somebody else started."""
    next_s, failed = 0.0, 0

    def gone() -> str | None:
        nonlocal next_s, failed
        if monotonic() < next_s:
            return None
        why = _unanswered(address)
        failed = 0 if why is None else failed + 1
        next_s = monotonic() + _AGAIN_S
        return f"the head at {address} does not answer: {why}" if failed >= _TRIES else None

    return gone
