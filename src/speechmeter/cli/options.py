"""How commands declare options: groups in `--help`, and words to choose from."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import typer
from typer.core import TyperCommand

from speechmeter.core.errors import InputError

TABLE_FORMATS = ("table", "markdown", "csv", "latex", "json")


class Command(TyperCommand):
    """A command whose help lists options in groups (`rich_help_panel`), in plain text.

    Typer itself draws groups with Rich only, and importing that doubles the time of `--help`.
    """

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then each group in the order in which its first option is declared."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            title, (name, help) = getattr(param, "rich_help_panel", None) or "Options", record
            if param.param_type_name == "argument":
                title, name = "Arguments", name.partition(" <")[0]  # without the Python type that Typer adds
            groups.setdefault(title, []).append((name, help))
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)


def option_group(title: str) -> Callable[..., Any]:
    """`typer.Option`, for options that `--help` lists under this title."""
    return partial(typer.Option, rich_help_panel=title)


def one_of(*choices: str) -> Callable[[typer.CallbackParam, str | None], str | None]:
    """The check of an option that takes one of some words."""

    def check(param: typer.CallbackParam, value: str | None) -> str | None:
        if value is not None and value not in choices:
            from speechmeter.core.plugins import nearest

            raise InputError(f"unknown {param.name} {value!r}", key=param.name, fix=nearest(value, list(choices)))
        return value

    return check


def format_option(*formats: str) -> Any:
    """The option `--format`, with the formats that a command can print."""
    help = f"Output format: {', '.join(formats[:-1])} or {formats[-1]}."
    return typer.Option("table", "--format", metavar="FORMAT", help=help, callback=one_of(*formats))
