"""Every option is declared with its flag: typer before 0.29 makes one of the metavar where there is none."""

import ast
from pathlib import Path

import pytest

CLI = Path(__file__).parents[3] / "src/speechmeter/cli"
FILES = {path.name: ast.parse(path.read_text()) for path in sorted(CLI.glob("*.py"))}


def undeclared(tree):
    """Parameters whose option has a metavar and no flag."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            own = function.args.args[len(function.args.args) - len(function.args.defaults) :]
            for parameter, default in zip(own, function.args.defaults, strict=True):
                made = isinstance(default, ast.Call) and not ast.unparse(default.func).endswith("Argument")
                if made and any(word.arg == "metavar" for word in default.keywords):
                    flags = [one.value for one in default.args[1:] if isinstance(one, ast.Constant)]
                    if not any(str(flag).startswith("--") for flag in flags):
                        yield parameter.arg


@pytest.mark.parametrize("name", FILES)
def test_every_option_with_a_metavar_names_its_flag(name):
    assert list(undeclared(FILES[name])) == []


def test_an_option_without_its_flag_is_found():
    assert list(undeclared(ast.parse("def run(a: str = Option(None, metavar='A')): ..."))) == ["a"]
