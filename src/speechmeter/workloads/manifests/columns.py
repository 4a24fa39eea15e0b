"""Names of columns: what a dataset calls its sound, its text, its ids and its speakers, where a plan says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from speechmeter.core.errors import InputError

Columns = tuple[tuple[str, str], ...]
"""(what it is, name of the column) pairs."""
ROLES = ("audio", "text", "id", "speaker")
_FORM = "for example `columns: audio=speech,text=sentence`"


def read_columns(text: str | None) -> Columns:
    """The pairs of `audio=speech,text=sentence`. Raises InputError for anything else."""
    pairs = [one.partition("=") for one in (text or "").split(",") if one.strip()]
    found = {role.strip(): name.strip() for role, _, name in pairs}
    if not all(equals and name.strip() for _, equals, name in pairs) or len(found) < len(pairs):
        raise InputError(f"columns takes pairs, each role once, not {text!r}", key="columns", fix=_FORM)
    if unknown := [role for role in found if role not in ROLES]:
        raise InputError(f"columns has no role {unknown[0]!r}", key="columns", fix=f"use {', '.join(ROLES)}; {_FORM}")
    return tuple(found.items())


def mapped(fields: Mapping[str, Any], columns: Columns) -> dict[str, Any]:
    """The fields with those that a plan names under the names of their roles."""
    return {**fields, **{role: fields[name] for role, name in columns if name in fields}}
