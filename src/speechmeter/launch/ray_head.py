"""Whether the head of a Ray cluster is there: Ray itself goes on trying for minutes, and then ends this process."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable
from time import monotonic
from typing import Any

from speechmeter.core.errors import InputError

KNOCK_S = 5.0
_AGAIN_S = 5.0
_PATIENCE = 3
"""So often in a row a head may not answer while a run lasts: one that is restarted comes back."""
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
"""How gRPC begins, with settings that say nothing. A server sends its own at once."""
_SETTINGS = 4
_NEEDED = ("gcs_server", "raylet")

Gone = Callable[[], str | None]
"""Says why the head is gone; None while it is there."""


def knock(address: str) -> None:
    """Raise InputError where no head answers within seconds. `auto` is the cluster that this machine is in."""
    found = _running_here() if address == "auto" else address
    why = _unanswered(found)
    if why is not None:
        raise InputError(
            f"no Ray cluster answers at {found!r}: {why}",
            where="--address",
            fix="start one with `ray start --head --port=6379` and give HOST:6379",
        )


def _running_here() -> str:
    """The address that Ray would take: it may be that of a head which is long gone."""
    from ray._private import services

    try:
        return str(services.canonicalize_bootstrap_address("auto"))
    except (ConnectionError, ValueError, OSError, RuntimeError) as error:
        raise InputError(
            "no Ray cluster runs on this machine", where="--address", fix="`ray start` one, or give HOST:PORT"
        ) from error


def _unanswered(address: str) -> str | None:
    """Why no gRPC server answers at an address; None where one does."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=KNOCK_S) as talk:
            if os.environ.get("RAY_USE_TLS", "0").lower() not in ("0", "false", ""):
                return None  # what it says is not for us
            talk.sendall(_HELLO)
            said = talk.recv(9)
    except TimeoutError:
        return f"nothing within {KNOCK_S:g} s"
    except (OSError, ValueError, OverflowError) as error:
        return str(error)
    return None if len(said) > 3 and said[3] == _SETTINGS else "whoever listens there is no Ray head"


def own_head(ray: Any) -> Gone:
    """Watches the processes of a cluster that we started."""

    def gone() -> str | None:
        with contextlib.suppress(AttributeError):  # Ray's own books, which may be kept otherwise one day
            dead = {str(kind) for kind, _ in ray._private.worker._global_node.dead_processes()}
            ended = sorted(dead.intersection(_NEEDED))
            return f"Ray's {' and '.join(ended)} on this machine ended" if ended else None
        return None

    return gone


def other_head(address: str) -> Gone:
    """Knocks at a cluster that somebody else started, every few seconds."""
    state = {"next_s": 0.0, "failed": 0.0}

    def gone() -> str | None:
        if monotonic() < state["next_s"]:
            return None
        why = _unanswered(address)
        state["failed"] = state["failed"] + 1 if why is not None else 0.0
        state["next_s"] = monotonic() + _AGAIN_S
        return f"the head at {address} does not answer: {why}" if state["failed"] >= _PATIENCE else None

    return gone
