"""The commit of the working directory, asked of git without a word of the repository's own configuration.

A repository may come from a stranger, and its configuration names programs: `core.fsmonitor`, hooks, filters that
attributes of its files ask for, the same again in submodules, a transport that fetches missing objects. None of them
may run without the user's trust. So git is given a directory of ours, with a configuration of ours, that borrows the
objects and a copy of the index. Where `git describe --dirty` would follow the configuration, this cannot.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

_TIMEOUT_S = 10.0
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_DIGITS = 12
_LONGEST_PATH = 4096 + 64
_HARMLESS = re.compile(r"core\.(filemode|symlinks|ignorecase|autocrlf|eol) (true|false|input|lf|crlf|native)")
"""Settings that say how files are compared; a repository on a disk without modes is dirty without the first."""
_OFF = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat")


def git_state(folder: Path | None = None) -> str:
    """Twelve digits of the commit, `-dirty` behind them when tracked files were changed; empty where it is not known.

    Submodules are not looked into: each has a configuration of its own.
    """
    program = shutil.which("git")
    found = _git_dir((folder or Path.cwd()).absolute())
    if found is None or program is None or not os.path.isabs(program):  # noqa: PTH117 - which gives text
        return ""
    try:
        with TemporaryDirectory(prefix="speechmeter-git-") as ours:
            return _Borrowed(program, Path(ours), *found).state()
    except (OSError, subprocess.SubprocessError, ValueError):
        return ""


def _git_dir(folder: Path) -> tuple[Path, Path] | None:
    """(directory of git, top of the files) of a folder; None outside a repository."""
    for top in (folder, *folder.parents):
        entry = top / ".git"
        if entry.is_dir():
            return entry, top
        if entry.is_file():  # of a linked worktree, or a submodule
            word, _, path = _first(entry).partition(":")
            return (top / path.strip(), top) if word == "gitdir" else None
    return None


def _first(file: Path) -> str:
    """The text of a small file, or the start of a longer one."""
    with file.open(encoding="utf-8", errors="replace") as opened:
        return opened.read(_LONGEST_PATH)


class _Borrowed:
    """A directory of git that has nothing of the repository but its objects, its commit and its index."""

    def __init__(self, program: str, ours: Path, theirs: Path, top: Path) -> None:
        self._program, self._ours, self._theirs, self._top = program, ours, theirs, top
        clean = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        self._environ = {
            **clean,
            "HOME": str(ours), "XDG_CONFIG_HOME": str(ours), "GIT_CONFIG_NOSYSTEM": "1", "GIT_ATTR_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1",
            "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C",
        }  # fmt: skip

    def state(self) -> str:
        """The commit, and whether tracked files differ from it. Raises ValueError where either is unknown."""
        # the one question to the repository itself: naming a commit and paths runs no program, whatever is configured
        commit, objects, index = self._ask(
            "rev-parse", "HEAD", "--git-path", "objects", "--git-path", "index", GIT_DIR=str(self._theirs)
        ).splitlines()
        if not _COMMIT.fullmatch(commit):
            raise ValueError(f"{commit!r} is no commit")
        self._settle(commit)
        if (self._top / index).is_file():
            shutil.copy2(self._top / index, self._ours / "index")  # from its time git decides which files to read again
        borrowed = {
            "GIT_DIR": str(self._ours), "GIT_WORK_TREE": str(self._top),
            "GIT_OBJECT_DIRECTORY": str(self._top / objects), "GIT_INDEX_FILE": str(self._ours / "index"),
        }  # fmt: skip
        short = self._ask("rev-parse", f"--short={_DIGITS}", "HEAD", **borrowed).strip()
        self._run("update-index", "-q", "--refresh", **borrowed)
        compared = self._run("diff-index", "--quiet", "--ignore-submodules=all", "HEAD", "--", **borrowed).returncode
        if compared not in (0, 1):
            raise ValueError(f"diff-index ended with {compared}")
        return f"{short}-dirty" if compared else short

    def _settle(self, commit: str) -> None:
        """Files of a directory of git: at this commit, on no branch."""
        shared = self._theirs / "commondir"  # names the directory that all worktrees of the repository share
        common = self._theirs / _first(shared).strip() if shared.is_file() else self._theirs
        found = self._run("config", "--file", str(common / "config"), "--get-regexp", "^core\\.").stdout
        kept = [line for line in found.splitlines() if _HARMLESS.fullmatch(line)]
        lines = ["[core]", *(line.removeprefix("core.").replace(" ", " = ", 1) for line in kept)]
        if len(commit) == len("0" * 64):
            lines += ["repositoryformatversion = 1", "[extensions]", "objectformat = sha256"]
        (self._ours / "config").write_text("\n".join(lines) + "\n")
        (self._ours / "HEAD").write_text(f"{commit}\n")
        (self._ours / "refs").mkdir()

    def _ask(self, *words: str, **environ: str) -> str:
        done = self._run(*words, **environ)
        if done.returncode != 0:
            raise ValueError(f"git {words[0]} failed with exit code {done.returncode}")
        return done.stdout

    def _run(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._program, *_OFF, *words], cwd=self._top, env={**self._environ, **environ}, capture_output=True,
            text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=_TIMEOUT_S, check=False,
        )  # fmt: skip
