"""Run the commands that the documentation shows with their output, and write what they print: `make docs`.

A block with output has a mark above it:

    <!-- output: width=100 lines=12 -->
    ```console
    $ speechmeter show examples/runs/cpu-grid
    (what it prints)
    ```

`width` is that of the terminal, 110 by default. `lines` is how many lines of each command's output are kept, all by
default. The commands of a page run one after another in one new folder; its `examples` and `plans` are those of the
repository. A block of code below `<!-- file: NAME -->` is written into the folder first. Only commands that print the
same each time are shown with output: those that read a run of `examples/runs`, or that refuse.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

ROOT = Path(__file__).parents[1]
MARK = r"<!-- output:(?P<options>[^\n]*)-->\n"
BLOCK = re.compile(rf"(?P<mark>{MARK})?(?P<fence>```console\n)(?P<body>.*?)(?=^```$)", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"<!-- file: (?P<name>\S+) -->\n```\w+\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"\x1b\[[0-9;]*m")
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", *(ROOT / "examples").rglob("*.md")])
"""Every page that may show commands."""


class Terminal(io.StringIO):
    """A stream that says that it is a terminal: tables are drawn at its width."""

    def isatty(self) -> bool:
        """Always."""
        return True


class Messages(io.TextIOBase):
    """Standard error in the same window, without the progress lines that come and go on a terminal."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal

    def write(self, text: str) -> int:
        """Write between the lines of standard output."""
        return self.terminal.write(text)


@contextmanager
def folder(page: str) -> Iterator[None]:
    """Work in a new folder with the files that a page names."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as new:
        for name in ("examples", "plans"):
            (Path(new) / name).symlink_to(ROOT / name)
        for file in FILE.finditer(page):
            (Path(new) / file["name"]).write_text(file["text"])
        os.chdir(new)
        try:
            yield
        finally:
            os.chdir(before)


def printed(words: list[str], width: int) -> str:
    """What the command prints on a terminal of that width, without colours."""
    lines = CODE.sub("", coloured(words, width)).rstrip().splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


def coloured(words: list[str], width: int) -> str:
    """What the command prints on a terminal of that width."""
    from speechmeter.cli.main import main

    terminal, argv = Terminal(), sys.argv
    sys.argv = words
    try:
        with (
            patch.dict(os.environ, {"COLUMNS": str(width), "TERM": "xterm"}),
            redirect_stdout(terminal),
            redirect_stderr(Messages(terminal)),
            warnings.catch_warnings(),
        ):
            main()
    except SystemExit:
        pass
    finally:
        sys.argv = argv
    return terminal.getvalue()


def commands(body: str) -> list[str]:
    """The commands of a block, each with the lines that continue it: after a backslash, or inside quotes."""
    found: list[str] = []
    unfinished = False
    for line in body.splitlines(keepends=True):
        if unfinished:
            found[-1] += line
        elif line.startswith("$ "):
            found.append(line)
        else:
            continue
        unfinished = found[-1].endswith("\\\n") or found[-1].count('"') % 2 == 1
    return found


def output(body: str) -> str:
    """What is in a block besides its commands."""
    for command in commands(body):
        body = body.replace(command, "", 1)
    return body


def words(command: str) -> list[str]:
    """A command as the shell splits it, without its comment and the file that it writes to."""
    split = shlex.split(command.removeprefix("$ "), comments=True)
    return split[: split.index(">")] if ">" in split else split


def run(block: re.Match[str]) -> str:
    """The block with its output made anew; one without a mark as it is."""
    if block["mark"] is None:
        return block[0]
    options = dict(option.split("=") for option in block["options"].split())
    made = ""
    for command in commands(block["body"]):
        lines = printed(words(command), int(options.get("width", 110))).splitlines(keepends=True)
        most = int(options.get("lines", len(lines)))
        made += "".join([command, *lines[:most], *(["…\n"] if len(lines) > most else [])])
    return f"{block['mark']}{block['fence']}{made}"


def filled(text: str) -> str:
    """The text of a page with the output of its commands made anew."""
    with folder(text):
        return BLOCK.sub(run, text)


def main() -> None:
    """Write every page that shows output."""
    for page in PAGES:
        text = page.read_text()
        if "<!-- output:" in text:
            page.write_text(filled(text))


if __name__ == "__main__":
    main()
