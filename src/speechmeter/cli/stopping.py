"""What a run that ended early leaves to its user: how far it came, where it is, and the command that continues it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from speechmeter.core.errors import Spell, StoppedRun, as_plan

_RUN = "run"
_VALUED = ("-o", "--output")
_BARE = ("--resume", "--force")


def stop_lines(stop: StoppedRun, argv: Sequence[str], spell: Spell = as_plan) -> str:
    """The lines for a run that was stopped; `argv` are the words behind `speechmeter` that began it."""
    lines = [f"speechmeter: {stop.message(spell)}"]
    if stop.run is not None and argv and argv[0] == _RUN:
        lines.append(f"to continue: {resume_command(argv, stop.run, stop.resume_with)}")
    return "\n".join(lines)


def resume_command(argv: Sequence[str], run: Path, options: Mapping[str, str] | None = None) -> str:
    """The same words with `--resume -o RUN`, quoted for a shell. `options` take the place of those given."""
    added = {f"--{key.replace('_', '-')}": value for key, value in (options or {}).items()}
    words = [word for option in added.items() for word in option]
    kept = _without(argv, (*_VALUED, *added))
    return shlex.join(["speechmeter", *kept, *words, "--resume", "-o", str(run)])


def _without(argv: Sequence[str], valued: Sequence[str]) -> Iterator[str]:
    """The words without these flags and their values, however they are joined, and without what resuming excludes."""
    words = iter(argv)
    for word in words:
        flag, equals, _ = word.partition("=")
        if flag in valued:
            if not equals:
                next(words, None)
        elif word not in _BARE and not (word.startswith("-o") and not word.startswith("--")):
            yield word
