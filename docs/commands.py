"""The reference of the command line, made from the commands themselves. `docs/tables.py` writes it into its page."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import typer

from speechmeter.cli.main import app

LINE_BREAKS_KEPT = "\b"
"""In a help text, the lines that follow are printed as they are."""

COMMON = 3
"""An option that so many commands have, with the same help, is described once."""


def contexts(command: Any = None, parent: Any = None, name: str = "speechmeter") -> Iterator[Any]:
    """A context for each command without subcommands, in the order of `--help`."""
    command = command or typer.main.get_command(app)
    context = command.make_context(name, [], parent=parent, resilient_parsing=True)
    below = getattr(command, "commands", None)
    if below is None:
        yield context
    for word, one in (below or {}).items():
        yield from contexts(one, context, word)


def marked(text: str) -> str:
    """A text in Markdown: options as code, and nothing that is read as a table or a tag."""
    escaped = text.replace("|", "/").replace("<", "&lt;")
    return re.sub(r"(?<![`\w-])(--[a-z][\w-]*)(?!`)", r"`\1`", escaped)


def paragraphs(help: str) -> str:
    """The help text, with its examples as a block of commands."""
    text, _, examples = help.partition(f"{LINE_BREAKS_KEPT}\n")
    lines = [f"$ {line.strip()}" for line in examples.splitlines()[1:]]
    return "\n".join([marked(text.strip()), "", "```console", *lines, "```"])


def fact(words: str) -> str:
    """What `--help` has in brackets, as a sentence: a default, a range (not "at least 0" or 1), or "required"."""
    if "<=x<=" in words:
        return " From {} to {}.".format(*words.split("<=x<="))
    if words in {"x>=0", "x>=1"}:
        return ""
    if words.startswith("x>="):
        return f" At least {words[3:]}."
    return f" {words[0].upper()}{words[1:]}."


def listed(context: Any) -> Iterator[tuple[str, str, str]]:
    """(group, name, what `--help` says with the default) of each argument and option but `--help`."""
    for param in context.command.get_params(context):
        if param.name != "help":
            name, help = param.get_help_record(context)
            text, _, extra = help.partition("  [")
            facts = "".join(fact(words) for words in extra.rstrip("]").split("; ") if words)
            yield getattr(param, "rich_help_panel", None) or "", name.partition(" <")[0], marked(text + facts)


def common() -> dict[str, str]:
    """What is the same in several commands, by name: it is described once."""
    counts = Counter((name, text) for context in contexts() for _, name, text in set(listed(context)))
    return {name: text for (name, text), count in counts.items() if count >= COMMON}


def options(context: Any, known: dict[str, str]) -> str:
    """A list of arguments and options, group by group; those that are described elsewhere by name alone."""
    lines, elsewhere, last = [], [], ""
    for group, name, text in listed(context):
        if known.get(name) == text:
            elsewhere.append(f"`{name}`")
            continue
        if group and group != last:
            lines.append(f"\n{group}:\n")
        last = group
        lines.append(f"- `{name}`: {text}")
    return "\n".join([*lines, *([f"\nAlso {', '.join(elsewhere)}."] if elsewhere else [])]).strip()


def reference() -> str:
    """What commands share, then one section for each."""
    known = common()
    sections = ["Options that several commands have:", "\n".join(f"- `{name}`: {text}" for name, text in known.items())]
    for context in contexts():
        words = context.command_path.partition(" ")[2]
        sections += [f"## {words}", paragraphs(context.command.help), options(context, known)]
    return "\n\n".join(section for section in sections if section)
