"""Two commits of the user's repository, each with its files and an environment: made once, used again.

They are kept in `~/.cache/speechmeter/commits/REPOSITORY/COMMIT`: `tree` is a worktree of git, `env` a virtual
environment that has the packages of this one and, before them, the project as it was at the commit. What is installed
there for a commit is never written into this environment.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from speechmeter.core import plugins
from speechmeter.core.commit_files import COMMIT, REPOSITORY, TREE, as_at_commit
from speechmeter.core.errors import InputError
from speechmeter.core.types import BASELINE, Case
from speechmeter.launch.executors import THIS, Interpreter

_DIGITS = 12
_GIT_S, _INSTALL_S = 120.0, 3600.0
_INSTALLABLE = re.compile(r"^\[(project|build-system)\]", re.MULTILINE)
_READY = "ready"
"""The file that says from what an environment was made. Written last: without it, it is made again."""
_KEY = "commits"


@dataclass(frozen=True, kw_only=True)
class Commit:
    """A commit with its files and the interpreter that measures it."""

    name: str
    id: str
    subject: str
    folder: Path
    interpreter: Interpreter

    @property
    def short(self) -> str:
        """Twelve digits."""
        return self.id[:_DIGITS]


def commits(names: Sequence[str], say: Callable[[str], None] = lambda line: None) -> dict[str, Commit]:
    """The two commits by their variant, BASELINE first, each ready to be measured. InputError for what cannot be.

    `say` gets a line before anything that takes long.
    """
    repository = _Repository.here()
    found = [repository.commit(name) for name in names]
    if found[0] == found[1]:
        raise InputError(
            f"{names[0]} and {names[1]} are the same commit, {found[0][:_DIGITS]}",
            key=_KEY, fix="name two different commits, such as main HEAD",
        )  # fmt: skip
    if repository.is_dirty():
        say("the working directory has changes that are not committed: they are not measured")
    made = [repository.made(name, commit, say) for name, commit in zip(names, found, strict=True)]
    return dict(zip((BASELINE, THIS), made, strict=True))


def check_at_commits(cases: Sequence[Case], found: Mapping[str, Commit]) -> None:
    """Raise InputError for a model that one of the commits does not have."""
    for commit in found.values():
        with as_at_commit(commit.interpreter.environ):
            for case in cases:
                try:
                    plugins.subject(case.subject.plugin).check(case)
                except InputError as error:
                    raise type(error)(
                        f"at commit {commit.short} ({commit.name}): {error.reason}", where=error.where, key="models",
                        fix="name commits that both have it, or install the project in this environment",
                    ) from error  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class _Repository:
    """The repository of the working directory."""

    git: str
    top: Path

    @classmethod
    def here(cls) -> _Repository:
        git = shutil.which("git")
        if git is None:
            raise InputError("git is not installed", key=_KEY, fix="install git")
        done = _run([git, "rev-parse", "--show-toplevel"], Path.cwd(), _GIT_S)
        if done.returncode != 0:
            raise InputError(
                "the current directory is not in a git repository", key=_KEY, fix="run the command in your repository"
            )
        return cls(git=git, top=Path(done.stdout.strip()))

    def ask(self, *words: str, where: Path | None = None) -> subprocess.CompletedProcess[str]:
        # neither hooks nor a file watcher of the repository: this is no checkout of the user's
        quiet = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "advice.detachedHead=false")
        return _run([self.git, *quiet, *words], where or self.top, _GIT_S)

    def commit(self, name: str) -> str:
        """The whole id of a commit."""
        done = self.ask("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        if done.returncode != 0:
            raise InputError(
                f"there is no commit {name!r} in {self.top}",
                key=_KEY, fix="see `git log --oneline`, or fetch it first (git fetch)",
            )  # fmt: skip
        return done.stdout.strip()

    def is_dirty(self) -> bool:
        return bool(self.ask("status", "--porcelain", "--untracked-files=no").stdout.strip())

    def made(self, name: str, commit: str, say: Callable[[str], None]) -> Commit:
        """Its files and its environment, made where they are not there yet."""
        mark = hashlib.sha256(str(self.top).encode()).hexdigest()[:8]
        folder = cache_folder() / f"{self.top.name}-{mark}" / commit[: 2 * _DIGITS]
        tree = folder / "tree"
        self._check_out(commit, tree, say)
        python = _environment(folder / "env", tree, self.top, commit, say)
        environ = {REPOSITORY: str(self.top), TREE: str(tree), COMMIT: commit[:_DIGITS]}
        return Commit(
            name=name, id=commit, subject=self.ask("log", "-1", "--format=%s", commit).stdout.strip(), folder=folder,
            interpreter=Interpreter(python=python, environ=environ),
        )  # fmt: skip

    def _check_out(self, commit: str, tree: Path, say: Callable[[str], None]) -> None:
        """A worktree; one that was changed since is made again."""
        if tree.is_dir():
            at = self.ask("rev-parse", "HEAD", where=tree).stdout.strip()
            changed = self.ask("status", "--porcelain", "--untracked-files=no", where=tree)
            if at == commit and changed.returncode == 0 and not changed.stdout.strip():
                return
            shutil.rmtree(tree)
        say(f"commit {commit[:_DIGITS]}: its files go to {tree}")
        tree.parent.mkdir(parents=True, exist_ok=True)
        self.ask("worktree", "prune")
        done = self.ask("worktree", "add", "--force", "--detach", str(tree), commit)
        if done.returncode != 0:
            raise InputError(f"git cannot check out {commit[:_DIGITS]}: {_last(done.stderr)}", key=_KEY)


def cache_folder() -> Path:
    """Where commits are kept: in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "speechmeter" / "commits"


def _environment(folder: Path, tree: Path, top: Path, commit: str, say: Callable[[str], None]) -> str:
    """The interpreter of an environment with the project installed; this one for a project that is not installed."""
    if not _is_installable(tree):
        return sys.executable
    packages = _packages_here(top)
    fingerprint = "\n".join([commit, sys.version, sys.prefix, *packages])
    python, ready = folder / "bin" / "python", folder / _READY
    if ready.is_file() and ready.read_text() == fingerprint and python.exists():
        return str(python)
    shutil.rmtree(folder, ignore_errors=True)
    say(f"commit {commit[:_DIGITS]}: installing it in {folder}")
    _succeed([sys.executable, "-m", "venv", "--without-pip", str(folder)], tree, commit)
    paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
    Path(paths["purelib"], "zz_packages_of_the_user.pth").write_text("\n".join(packages) + "\n")
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-input", "--quiet"]
    _succeed([*install, "--disable-pip-version-check", str(tree)], tree, commit)
    ready.write_text(fingerprint)
    return str(python)


def _is_installable(tree: Path) -> bool:
    project = tree / "pyproject.toml"
    described = project.is_file() and _INSTALLABLE.search(project.read_text(encoding="utf-8", errors="replace"))
    return bool(described) or (tree / "setup.py").is_file()


def _packages_here(top: Path) -> list[str]:
    """Folders that this interpreter imports from, but for the standard library and for the user's own files."""
    standard = {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")}
    found: dict[str, None] = {}
    for entry in sys.path:
        path = Path(entry).resolve()
        own = path.is_relative_to(top) and not {"site-packages", "dist-packages"} & set(path.parts)
        inside = path in standard or path.name == "lib-dynload" or path.suffix == ".zip"
        if entry and path.is_dir() and not own and not inside:
            found[str(path)] = None
    return list(found)


def _succeed(command: Sequence[str], tree: Path, commit: str) -> None:
    done = _run(command, tree, _INSTALL_S)
    if done.returncode != 0:
        raise InputError(
            f"commit {commit[:_DIGITS]} cannot be installed: {_last(done.stderr or done.stdout)}",
            key=_KEY, fix=f"see what this prints: pip install {tree}",
        )  # fmt: skip


def _run(command: Sequence[str], folder: Path, time_s: float) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}  # as inside a hook
    try:
        return subprocess.run(
            command, cwd=folder, env={**clean, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8"}, capture_output=True,
            text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=time_s, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise InputError(f"{Path(command[0]).name} took more than {time_s:g} s", key=_KEY, fix="try again") from None


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith(("error", "fatal"))]
    return (errors or lines or ["no message"])[-1][:300]
