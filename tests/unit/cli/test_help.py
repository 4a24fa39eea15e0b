"""`--help` of every command: groups, full sentences, examples that work, no names of Python types."""

import ast
import re
import shlex
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from speechmeter.cli.main import app
from speechmeter.core.errors import InputError


def commands(command=None, words=()):
    command = command or typer.main.get_command(app)
    below = getattr(command, "commands", None)
    if below is None:
        yield words, command
    for name, one in (below or {}).items():
        yield from commands(one, (*words, name))


COMMANDS = dict(commands())


def help_of(words):
    return CliRunner().invoke(app, [*words, "--help"], terminal_width=200).output


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_has_full_sentences_an_example_and_no_type_names(words):
    text = help_of(words)
    assert not re.search(r"<(str|int|float|path|list|bool)|\b(TEXT|INTEGER|FLOAT|PATH)\b", text)
    assert re.search(r"^  Examples?:\n    speechmeter ", text, re.M)
    for option in COMMANDS[words].params:
        if option.help != "Show this message and exit.":
            first = option.help.partition(" ")[0].rstrip(".,:;")
            assert option.help.endswith((".", "…")), option.help
            assert first[0].isupper() or first in {"cpu", "float32", "geomean", "subprocess"}, option.help


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_example_is_accepted_by_its_command(words):
    command = COMMANDS[words]
    lines = [line.strip() for line in command.help.splitlines() if line.strip().startswith("speechmeter ")]
    assert lines
    for line in lines:
        given = shlex.split(line)[1:]
        assert tuple(given[: len(words)]) == words
        command.make_context(words[-1], given[len(words) :])


def test_options_of_run_are_in_groups_and_help_comes_last():
    text = help_of(("run",))
    titles = re.findall(r"^(\S.*):$", text, re.M)
    assert titles[0] == "Arguments" and titles[-1] == "Options" and len(titles) > 6
    assert text.index("What is measured:") < text.index("  --model MODEL") < text.index("How it is measured:")
    assert text.index("Output, and continuing a run:") < text.index("  --resume  ")


@pytest.mark.parametrize(
    ("words", "key"),
    [(("show", "x", "--format", "csw"), "format"), (("trace", "diff", "a", "b", "--changed", "counts"), "changed")],
)
def test_a_word_that_an_option_does_not_take_is_refused_with_the_nearest(words, key):
    with pytest.raises(InputError, match="did you mean") as caught:
        CliRunner().invoke(app, words, catch_exceptions=False)
    assert caught.value.key == key


def test_commands_reach_what_measures_and_stores_through_api_alone():
    below = {"engine", "launch", "store", "analysis", "plan", "subjects", "workloads", "meters"}
    found = set()
    for path in (Path(__file__).parents[3] / "src/speechmeter/cli").glob("*.py"):
        tree = ast.parse(path.read_text())
        types = {id(node) for one in ast.walk(tree) if isinstance(one, ast.If) for node in ast.walk(one)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and id(node) not in types:
                package = (node.module or "").split(".")[1:2]
                found |= {(path.name, node.module)} if below & set(package) else set()
    assert found == {("errors.py", "speechmeter.plan.schema")}  # which keys a plan has, to spell them with --set
