"""Scopes are made and taken apart in `core/scope.py` alone: by the syntax trees of all other modules."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from speechmeter.core import scope as scopes

PACKAGE = Path(__file__).parents[2] / "src/speechmeter"
HOME = PACKAGE / "core/scope.py"
FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if path != HOME]
TAKING_APART = ("split", "rsplit", "partition", "rpartition", "removeprefix", "removesuffix", "startswith", "endswith",
                "replace")  # fmt: skip
KINDS = tuple(value for value in vars(scopes).values() if isinstance(value, str) and value.endswith(":"))
CONSTANTS = {name for name, value in vars(scopes).items() if name.isupper() and isinstance(value, str)}


def findings(tree: ast.AST) -> Iterator[str]:
    """Every place in a module that takes a scope apart, or makes one, by hand."""
    mine = _imported(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TAKING_APART:
            if _is_scope(node.func.value):
                yield f"{node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.JoinedStr) and node.values:
            if _begins_a_scope(node.values[0], mine) or _adds_to_a_scope(node):
                yield f"{node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            if isinstance(node.left, ast.Name) and node.left.id in mine:
                yield f"{node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.Constant) and node.value in KINDS:
            yield f"{node.lineno}: {node.value!r}"


def _is_scope(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name == "scope" or name.endswith("_scope")


def _begins_a_scope(first: ast.expr, mine: set[str]) -> bool:
    """`f"stage:{name}"` and `f"{STAGE}{name}"`; a message such as `f"kind: {kind}"` has a space behind the colon."""
    if isinstance(first, ast.Constant):
        return any(first.value.startswith(kind) and not first.value.startswith(f"{kind} ") for kind in KINDS)
    return isinstance(first, ast.FormattedValue) and isinstance(first.value, ast.Name) and first.value.id in mine


def _adds_to_a_scope(text: ast.JoinedStr) -> bool:
    """`f"{line.scope}@{way}"`."""
    first, *rest = text.values
    return bool(
        isinstance(first, ast.FormattedValue)
        and _is_scope(first.value)
        and rest
        and isinstance(rest[0], ast.Constant)
        and rest[0].value.startswith("@")
    )


def _imported(tree: ast.AST) -> set[str]:
    """Names of kinds that a module has from `core/scope.py`."""
    places = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == scopes.__name__)
    return {alias.asname or alias.name for node in places for alias in node.names if alias.name in CONSTANTS}


def test_no_other_module_makes_a_scope_or_takes_one_apart():
    found = {path.relative_to(PACKAGE).as_posix(): list(findings(ast.parse(path.read_text()))) for path in FILES}
    assert {file: lines for file, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "planted",
    [
        'm.scope.removeprefix("module:x")',
        'scope.partition(":")',
        'own_scope.startswith("x")',
        'line.scope.rpartition("@")',
        'scope.split(":")',
        'f"stage:{name}"',
        'f"op:{name}"',
        'f"process:{name}"',
        'f"within:{name}"',
        'f"{line.scope}@{way}"',
        '_STAGE = "stage:"',
        'from speechmeter.core.scope import PART\nf"{PART}{name}"',
        "from speechmeter.core.scope import WITHIN\nWITHIN + name",
    ],
)
def test_one_that_is_planted_is_found(planted):
    assert list(findings(ast.parse(planted)))


@pytest.mark.parametrize("fine", ['f"kind: {kind}"', 'text.partition(":")', 'alt.X("label:N")', "Scope.parse(scope)"])
def test_what_is_no_scope_is_left_alone(fine):
    assert not list(findings(ast.parse(fine)))
