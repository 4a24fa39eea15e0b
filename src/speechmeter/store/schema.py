"""Old record lines made readable. An upgrade takes a line's data at one schema and returns it at the next.

History of the schema: 1, first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from speechmeter.core.errors import StoreError
from speechmeter.core.types import SCHEMA, Record
from speechmeter.store.checked import check_record


class NewerSchemaError(StoreError):
    """A line is whole, and was written by a newer Speechmeter: what it says is not known here."""


Upgrade = Callable[[dict[str, Any]], dict[str, Any]]

UPGRADES: dict[int, Upgrade] = {}
"""From a schema number to the function that lifts a line to the next one."""


def record_from_line(data: Any, *, upgrades: dict[int, Upgrade] = UPGRADES, newest: int = SCHEMA) -> Record:
    """A record from one line's data, upgraded as needed. Raises StoreError when it is not a record of ours."""
    if not isinstance(data, dict) or type(data.get("schema")) is not int:
        raise StoreError("not a record: it has no schema number")
    while data["schema"] < newest:
        lift = upgrades.get(data["schema"])
        if lift is None:
            raise StoreError(f"schema {data['schema']} is not known to this version")
        data = {**lift(data), "schema": data["schema"] + 1}
    if data["schema"] > newest:
        raise NewerSchemaError(
            f"schema {data['schema']} was written by a newer Speechmeter; this one reads up to {newest}"
        )
    try:
        check_record(data)
        return Record.from_json(data)
    except KeyError as error:
        raise StoreError(f"not a whole record: {error} is missing") from error
    except (TypeError, AttributeError, ValueError) as error:
        raise StoreError(f"not a record of ours: {error}") from error
