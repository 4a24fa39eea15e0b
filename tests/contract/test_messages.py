"""Messages name options by key, never by flag, and none is rewritten: by the syntax trees of the package."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from speechmeter.cli.main import app
from speechmeter.core import errors

PACKAGE = Path(__file__).parents[2] / "src/speechmeter"
TREES = {path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}
MAY_NAME_FLAGS = ("cli/", "integrations/pytest/")
OTHER_PROGRAMS = re.compile(r"\b(ray start|pip install|ffmpeg|nvidia-smi|sudo|sysctl|python -m|ct2-\S+)\b[^;,)]*")
"""What follows such a command are flags of that program."""


def our_flags() -> set[str]:
    """Every flag of every command."""
    import typer

    def flags(command) -> Iterator[str]:
        for option in command.params:
            if option.param_type_name == "option":
                yield from (*option.opts, *option.secondary_opts)
        for below in getattr(command, "commands", {}).values():
            yield from flags(below)

    return set(flags(typer.main.get_command(app)))


OURS = re.compile("|".join(rf"(?<![\w-]){re.escape(flag)}(?![\w-])" for flag in sorted(our_flags(), key=len)[::-1]))


def error_classes() -> set[str]:
    """The names of our errors, those that are defined beside `core.errors` included."""
    names = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}
    classes = [node for tree in TREES.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for _ in range(3):
        names |= {one.name for one in classes if any(ast.unparse(base) in names for base in one.bases)}
    return names


ERRORS = error_classes()


def texts(node: ast.AST, constants: dict[str, ast.expr]) -> Iterator[str]:
    """Every text in an expression, also of constants of the file that it names."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value
        elif isinstance(part, ast.Name) and part.id in constants:
            yield from texts(constants[part.id], {})


def flags_in(tree: ast.Module) -> list[str]:
    """The texts of errors that a file makes in which a flag of ours is written out."""
    constants = {
        ast.unparse(target): node.value for node in tree.body if isinstance(node, ast.Assign) for target in node.targets
    }
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n.func).split(".")[-1] in ERRORS]
    given = [text for call in calls for part in (*call.args, *call.keywords) for text in texts(part, constants)]
    return [text for text in given if OURS.search(OTHER_PROGRAMS.sub("", text))]


def test_no_error_names_a_flag_where_a_key_would_do():
    files = [file for file in TREES if not file.startswith(MAY_NAME_FLAGS)]
    found = {file: texts for file in files if (texts := flags_in(TREES[file]))}
    assert not found, f"write the key in backticks, or use command_line: {found}"


def rewritten_in(function: ast.AST) -> list[str]:
    """Calls in a function that replace words in the text of an error that it caught or was given."""
    held = {node.name for node in ast.walk(function) if isinstance(node, ast.ExceptHandler) and node.name}
    held |= {
        node.arg
        for node in ast.walk(function)
        if isinstance(node, ast.arg) and node.annotation is not None and ast.unparse(node.annotation) in ERRORS
    }
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and names_in(node.value) & held:
            held |= {name for target in node.targets for name in names_in(target)}
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call) and len(node.args) > 1]
    return [
        ast.unparse(call)
        for call in calls
        if (isinstance(call.func, ast.Attribute) and call.func.attr == "replace" and names_in(call.func.value) & held)
        or (ast.unparse(call.func) == "re.sub" and set().union(*map(names_in, call.args)) & held)
    ]


def names_in(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def test_no_text_of_an_error_is_rewritten():
    functions = {
        f"{file}:{node.name}": node
        for file, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }
    found = {name: calls for name, node in functions.items() if (calls := rewritten_in(node))}
    assert found == {}


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("raise InputError('x', fix='add --resume')", 1),
        ("raise errors.InputError('x', where='-o')", 1),
        ("FIX = 'use --launcher ray'\nraise RunDirError('x', fix=FIX)", 1),
        ("raise InputError(f'{x} needs --batch=1')", 1),
        ("raise InputError('x', key='resume', fix='add `resume`')", 0),
        ("raise InputError('x', fix='ray start --address HOST')", 0),
        ("raise InputError('a well-known word--outputs')", 0),
        ("raise ValueError('add --resume')", 0),
    ],
)
def test_a_flag_in_an_error_is_found(source, count):
    assert len(flags_in(ast.parse(source))) == count


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("def f(error: InputError):\n    return str(error).replace('a', 'b')", True),
        (
            "def f():\n    try: ...\n    except E as e:\n        text = str(e)\n        text = text.replace('a', 'b')",
            True,
        ),
        ("def f(text):\n    return text.replace('a', 'b')", False),
    ],
)
def test_a_rewritten_error_is_found(body, found):
    assert bool(rewritten_in(ast.parse(body).body[0])) is found
