"""Seeded damage to files, and a watch over what reading them does: inputs of the fuzz tests."""

from __future__ import annotations

import copy
import json
import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HOSTILE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**63, 10**400, -0.0, 0.5, 1e308, -1e308, float("nan"), float("inf"), "", " ", "0",
    "-1", "nan", "x" * 20_000, "\x00", "\ud800", "\x1b[31mred", "<script>alert(1)</script>", "{}", "[]",
    "../../../etc/passwd", "/etc/passwd", "/dev/zero", "http://127.0.0.1:9/x", "python:os:getcwd",
    "!!python/name:os.system", "$(touch pwned)", "`touch pwned`", "%s%n", "a\nb",
    [], {}, [[]], [None], {"": None}, [1] * 2000, ["a", 1, None],
    {"a": {"b": {}}},
)  # fmt: skip
PIECES = (
    b"\x00", b"\xff\xfe", b'"', b"\n", b"\t", b"{", b"}", b"[", b"]", b":", b"- ", b"&a ", b"*a", b"#", b"|", b"<<: ",
    b"!!python/object:os.x ", b"!!python/object/apply:os.mkdir ['pwned']", b"9" * 400, b"-1", b"1e999", b"NaN", b"null",
    b",", b"\\ud800", b"cos\nmkdir\n(S'pwned'\ntR.", b"? ", b"%", b"@", b"\r\n",
)  # fmt: skip


def damaged(raw: bytes, draw: random.Random) -> bytes:
    """The bytes with a few of them changed, lost, repeated or added."""
    made = bytearray(raw)
    for _ in range(draw.randint(1, 4)):
        place, length = draw.randrange(len(made) + 1), draw.choice((1, 1, 2, 8, 64, 1024))
        kind = draw.randrange(6)
        if kind == 0 and made:
            made[min(place, len(made) - 1)] = draw.randrange(256)
        elif kind == 1:
            made[place:place] = draw.choice(PIECES)
        elif kind == 2:
            del made[place : place + length]
        elif kind == 3:
            made[place:place] = made[place : place + length]
        elif kind == 4:
            made[place : place + length] = draw.randbytes(length)
        elif draw.random() < 0.3:
            del made[place:]
    return bytes(made)


def changed(data: Any, draw: random.Random) -> Any:
    """Plain data with one to three of its values, or keys, in the place of others."""
    made = copy.deepcopy(data)
    for _ in range(draw.randint(1, 3)):
        places = list(_places(made))
        if not places:
            return copy.deepcopy(draw.choice(HOSTILE))
        holder, key = draw.choice(places)
        kind = draw.random()
        if kind < 0.15:
            del holder[key]
        elif kind < 0.25 and isinstance(holder, dict):
            holder[str(draw.choice(HOSTILE))[:50]] = holder.pop(key)
        elif kind < 0.4:
            other, its = draw.choice(places)
            holder[key] = copy.deepcopy(other[its]) if its in _keys(other) else copy.deepcopy(draw.choice(HOSTILE))
        else:
            holder[key] = copy.deepcopy(draw.choice(HOSTILE))
    return made


ODD_NUMBERS = (0, 0.0, -1.5, 1e-300, 1e99, 1, 2**53, 0.1)


def bent(record: Any, draw: random.Random) -> Any:
    """A record of the right shape that nobody measured: odd numbers, names and scopes in the place of others."""
    made = copy.deepcopy(record)
    texts = [value for value in HOSTILE if isinstance(value, str)]
    for _ in range(draw.randint(1, 4)):
        rows, case = made["measurements"] or [{"values": [], "metric": "", "scope": ""}], made["case"]
        row, other, kind = draw.choice(rows), draw.choice(rows), draw.randrange(7)
        if kind == 0:
            row["values"] = [draw.choice(ODD_NUMBERS) for _ in row["values"]]
        elif kind == 1:
            row["metric"], row["unit"] = other["metric"], other.get("unit", "")
        elif kind == 2:
            row["scope"] = draw.choice((other["scope"], *texts))
        elif kind == 3:
            case["axes"][draw.choice(sorted(case["axes"]))] = draw.choice((None, True, -1, 0, 1e300, *texts))
        elif kind == 4:
            case["subject"]["name"] = draw.choice(texts)
        elif kind == 5:
            row.setdefault("notes", {})[draw.choice(texts)] = copy.deepcopy(draw.choice(HOSTILE))
        else:
            made[draw.choice(("reason", "host", "started", "environment"))] = draw.choice(texts)
    return made


def _keys(holder: Any) -> Any:
    return holder if isinstance(holder, dict) else range(len(holder))


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    for key in list(_keys(data)) if isinstance(data, dict | list) else ():
        yield data, key
        yield from _places(data[key])


def json_line(data: Any) -> bytes:
    """As a stranger may write it: with NaN and lone surrogates."""
    return json.dumps(data).encode() + b"\n"


_OWN_PEAK = "/proc/self/clear_refs"
"""A process that asks whether its own peak of memory can be reset writes nothing anywhere."""


class Watch:
    """What reading did besides reading: files opened for writing outside a folder, programs, connections."""

    _ALWAYS = (
        "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "subprocess.Popen", "socket.connect",
        "socket.bind", "pty.spawn",
    )  # fmt: skip
    _OF_FILES = (
        "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.symlink", "os.link", "os.chmod", "os.truncate",
        "shutil.rmtree",
    )  # fmt: skip

    def __init__(self) -> None:
        self.done: list[str] = []
        self._inside: str | None = None
        sys.addaudithook(self._hook)

    @contextmanager
    def over(self, folder: Path) -> Iterator[None]:
        """While it lasts nothing but files of this folder may be written."""
        self._inside = str(folder.resolve())
        try:
            yield
        finally:
            self._inside = None

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if self._inside is None:
            return
        if event == "open":
            path, mode, flags = args
            writes = bool(flags & (os.O_WRONLY | os.O_RDWR)) if isinstance(flags, int) else "r" not in str(mode)
            if writes and not self._is_inside(path):
                self.done.append(f"open for writing: {path!r}")
        elif event in self._ALWAYS or (event in self._OF_FILES and not self._is_inside(args[0], args[-1])):
            self.done.append(f"{event}: {args!r}"[:300])

    def _is_inside(self, path: Any, folder_fd: Any = -1) -> bool:
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        relative_to = f"/proc/self/fd/{folder_fd}" if isinstance(folder_fd, int) and folder_fd >= 0 else "."
        place = os.path.normpath(os.path.join(os.path.realpath(relative_to), os.fsdecode(path)))  # noqa: PTH118
        return place in ("/dev/null", _OWN_PEAK, self._inside) or place.startswith(f"{self._inside}/")
