"""The members of a tar file with their places in it. Nothing is unpacked, and no name is used as a path.

Written by hand because `tarfile` holds a header of any size in memory. Headers of more than a mebibyte are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from speechmeter.core.errors import InputError
from speechmeter.core.files import MIB
from speechmeter.workloads.manifests.lines import unreadable

_BLOCK = 512
_LARGEST_HEADER = MIB
_FILES = (b"0", b"\0", b"7")
"""Kinds of members that are plain files."""
_LONG_NAME, _PAX, _PAX_ALL = b"L", b"x", b"g"
_PACKED = {b"\x1f\x8b": "gzip", b"BZ": "bzip2", b"\xfd7": "xz", b"(\xb5": "zstd"}


class Member(NamedTuple):
    """A plain file in a tar file: its name as written, and where its bytes are."""

    name: str
    offset: int
    size: int


def members(path: Path) -> Iterator[Member]:
    """Every plain file, in order; links and folders are passed over. Raises InputError for what is no tar file."""
    try:
        if "\0" in str(path):  # which a list of tar files may hold, and no name of a file
            raise OSError("its name contains a null character")
        with path.open("rb") as file:
            yield from _members(file, path)
    except OSError as error:
        raise unreadable(path, error) from error


def _members(file: BinaryIO, path: Path) -> Iterator[Member]:
    end, at, name = path.stat().st_size, 0, ""
    size_in_pax: int | None = None
    while True:
        file.seek(at)
        head = file.read(_BLOCK)
        if not head.strip(b"\0"):  # the end, with or without its blocks of zeros
            return
        size = _checked_size(head, at, path) if size_in_pax is None else size_in_pax
        kind, start = head[156:157], at + _BLOCK
        if start + size > end:
            raise _damaged(path, f"its member at byte {at} ends beyond the file")
        at = start + -(-size // _BLOCK) * _BLOCK
        if kind in (_LONG_NAME, _PAX, _PAX_ALL):
            if size > _LARGEST_HEADER:
                raise _damaged(path, f"it has a header of {size:,} bytes")
            text = file.read(size)
            if kind == _LONG_NAME:
                name = _text(text)
            elif kind == _PAX:
                fields = _pax(text, path)
                name = fields.get("path", name)
                size_in_pax = int(fields["size"]) if fields.get("size", "").isdigit() else None
            continue
        if kind in _FILES:
            yield Member(name or _name(head), start, size)
        name, size_in_pax = "", None


def _checked_size(head: bytes, at: int, path: Path) -> int:
    """The size of a member whose header has the right checksum."""
    if at == 0 and (packed := next((word for magic, word in _PACKED.items() if head.startswith(magic)), None)):
        raise InputError(
            f"{str(path)!r} is packed with {packed}; a part of it cannot be read alone",
            key="data", fix="unpack it once, for example with gunzip",
        )  # fmt: skip
    try:
        summed = sum(head) - sum(head[148:156]) + 8 * 32
        if len(head) < _BLOCK or int(head[148:156].split(b"\0")[0].strip() or b"-1", 8) != summed:
            raise ValueError("its checksum is wrong")
        if head[124] & 0x80:  # a number of bytes that eight digits cannot hold
            return int.from_bytes(head[125:136], "big")
        return int(head[124:136].split(b"\0")[0].strip() or b"0", 8)
    except ValueError:
        raise _damaged(path, f"there is no header at byte {at}") from None


def _name(head: bytes) -> str:
    prefix = _text(head[345:500]) if head[257:262] == b"ustar" and head[262:263] == b"\0" else ""
    name = _text(head[:100])
    return f"{prefix}/{name}" if prefix else name


def _text(data: bytes) -> str:
    return data.split(b"\0")[0].decode(errors="replace")


def _pax(data: bytes, path: Path) -> dict[str, str]:
    """The fields of an extended header: lines `length key=value`."""
    fields: dict[str, str] = {}
    while data:
        length, _, _ = data.partition(b" ")
        size = int(length) if length.isdigit() and len(length) < 9 else 0
        if not len(length) < size <= len(data):
            raise _damaged(path, "an extended header has a wrong length")
        key, _, value = data[len(length) + 1 : size].decode(errors="replace").rstrip("\n").partition("=")
        fields[key] = value
        data = data[size:]
    return fields


def _damaged(path: Path, why: str) -> InputError:
    return InputError(f"{str(path)!r} is no tar file, or is damaged: {why}", key="data", fix="use a complete file")
