"""Each promise of the page of promises names a test that is there."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/contributing/promises.md"


def promises():
    """(promise, file, test) of each row of the last table."""
    table = PAGE.read_text()
    rows = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("| ") and "`tests/" in line]
    named = [(row[0].strip(), *re.fullmatch(r" `([\w/.]+)::(\w+)` ", row[1]).groups()) for row in rows]
    assert len(named) == len([line for line in table.splitlines() if line.startswith("| ")]) - 1
    return named


def test_each_promise_names_a_test_that_exists():
    missing = []
    for promise, file, test in promises():
        path = ROOT / file
        names = {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}
        if test not in names:
            missing.append(f"{promise}: {file}::{test}")
    assert missing == []


def test_there_are_promises_and_none_is_made_twice():
    said = [promise for promise, _, _ in promises()]
    assert len(said) > 20
    assert len(said) == len(set(said))
