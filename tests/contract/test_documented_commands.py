"""The commands that the documentation shows exist, print what it says that they print, and all have a reference."""

import html
import re

import commands
import console
import pictures
import pytest
import typer
from typer.testing import CliRunner

from speechmeter.cli.main import app
from speechmeter.report.plot import figures_of
from speechmeter.report.sources import read_sources

TEXTS = {str(page.relative_to(console.ROOT)): page.read_text() for page in console.PAGES}
CONTEXTS = {context.command_path.partition(" ")[2]: context for context in commands.contexts()}
REFERENCE = TEXTS["docs/reference/cli.md"]
OPTION = re.compile(r"^- `(?:-\w, )?(--[a-z][\w-]*)", re.M)  # a mention in the text of another one is no entry
IN_MANY = set(OPTION.findall(REFERENCE.partition("\n## ")[0]))
"""What several commands have is listed once, above them."""
SHOWN = [
    pytest.param(command, id=f"{page}: {command[2:60].strip()}")
    for page, text in TEXTS.items()
    for block in console.BLOCK.finditer(text)
    for command in console.commands(block["body"])
    if "speechmeter" in console.words(command)
]


@pytest.mark.parametrize("name", CONTEXTS)
def test_the_reference_lists_every_option_that_help_lists(name):
    text = CliRunner().invoke(app, [*name.split(), "--help"], terminal_width=200).output
    options = set(re.findall(r"^  (?:-\w, )?(--[a-z][\w-]*)", text, re.M)) - {"--help"}
    section = REFERENCE.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    assert section, "run `python docs/tables.py`"
    listed = set(OPTION.findall(section))
    assert options - IN_MANY == listed - IN_MANY, "run `python docs/tables.py`"


def test_the_pages_show_commands():
    assert len(SHOWN) > 100


def test_the_reference_has_defaults_ranges_and_groups():
    assert "- `--min-effect SHARE`: The smallest change that counts: " in REFERENCE
    assert "also a time such as 30ms. Default: 5%." in REFERENCE
    assert "\nOutput, and continuing a run:\n\n- `-o, --output DIR`: " in REFERENCE
    assert {"--force", "--format"} <= IN_MANY
    assert "[default" not in REFERENCE and not re.search(r"\[[^]\n]*<=", REFERENCE)


@pytest.mark.parametrize("command", SHOWN)
def test_a_command_that_is_shown_is_accepted(command):
    """Its options exist and have values of the right kind; nothing is run."""
    words = console.words(command)
    words = words[words.index("speechmeter") + 1 :]
    root = typer.main.get_command(app)
    group, name = (root.commands[words[0]], words[0]) if words else (root, "")
    if hasattr(group, "commands") and words:
        group, name, words = group.commands[words[1]], " ".join(words[:2]), words[1:]
    if words and words[0] not in {"--help", "--version"}:
        group.make_context(name, words[1:], resilient_parsing="--help" in words)


@pytest.mark.parametrize("page", TEXTS)
def test_output_is_shown_only_where_it_is_made_by_the_command(page):
    stray = [block["body"] for block in console.BLOCK.finditer(TEXTS[page]) if not block["mark"]]
    assert [body for body in stray if console.output(body).strip()] == []


@pytest.mark.parametrize("page", [page for page, text in TEXTS.items() if "<!-- output:" in text])
def test_the_output_on_a_page_is_what_its_commands_print_now(page):
    assert TEXTS[page] == console.filled(TEXTS[page]), "run `python docs/console.py`"


def test_a_stale_block_is_noticed():
    block = "<!-- output: lines=1 -->\n```console\n$ speechmeter --version\nspeechmeter 0.0.0\n```\n"
    made = console.filled(block)
    assert made != block and "speechmeter 0.0.0" not in made and made == console.filled(made)


def test_the_picture_of_the_terminal_shows_what_its_commands_print_now():
    """Words alone: other versions of Rich may draw them elsewhere. It loads nothing from a server."""
    texts = [
        [html.unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg)]
        for svg in ((pictures.IMAGES / "terminal.svg").read_text(), pictures.terminal_svg())
    ]
    assert texts[0] == texts[1], "run `make pictures`"
    assert "http" not in "".join(line for line in pictures.terminal_svg().splitlines() if "xmlns" not in line)


@pytest.mark.parametrize("name", pictures.PLOTS)
def test_the_title_of_a_picture_is_what_its_run_shows_now(name):
    """Titles and the notes below them, without drawing anything: a changed figure or word makes a picture stale."""
    run, kind = pictures.PLOTS[name]
    svg = re.sub(r"<style.*?</style>|<[^>]+>", "", (pictures.IMAGES / f"{name}.svg").read_text(), flags=re.S)
    drawn = re.sub(r"\s", "", html.unescape(svg))
    for figure in figures_of(read_sources([f"{pictures.ROOT}/examples/runs/{run}"]), kind):
        said = [figure.title, *(text.replace("`", "") for text in figure.caveats or ())]
        assert [text for text in said if re.sub(r"\s", "", text) not in drawn] == [], "run `make pictures`"
