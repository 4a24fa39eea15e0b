"""The settings of a test suite, from the command line and the ini file. Imports nothing but pytest."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from uuid import uuid4

import pytest

STARTING_PATH = frozenset(Path(entry).resolve() for entry in sys.path[1:])
"""Where fresh processes find modules as well: read before pytest adds folders, and without the one of the script."""
PROPERTY = "speechmeter"
"""The user property of a test's report that holds its findings: a list of rows of text."""
_RUN = "speechmeter_run"
_KEY = pytest.StashKey["Settings"]()


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Where this session's run is written to, and what it is compared with.

    `run` does not exist before the end of the session: until then each measurement is a small run in `parts`.
    """

    root: Path
    run: Path
    baseline: Path | None
    baseline_python: str | None
    update_baseline: bool

    @property
    def parts(self) -> Path:
        """The folder of the measurements that are not put together yet; hidden, so that no history counts them."""
        return self.run.with_name(f".{self.run.name}-parts")


def add_options(parser: pytest.Parser) -> None:
    """The command line's and the ini file's."""
    group = parser.getgroup("speechmeter", "cost of models: latency, memory and more")
    group.addoption(
        "--speechmeter-store", metavar="DIR", help="folder in which runs are written (default: runs in the root folder)"
    )
    group.addoption("--speechmeter-baseline", metavar="RUN", help="the run to compare with")
    group.addoption(
        "--speechmeter-baseline-python",
        metavar="PYTHON",
        help="also measure with this interpreter, side by side, and compare with it",
    )
    group.addoption(
        "--speechmeter-update-baseline",
        action="store_true",
        help="do not compare; write the new measurements into the baseline instead",
    )
    parser.addini("speechmeter_store", "folder in which the fixture `speechmeter` writes runs", default="runs")
    parser.addini("speechmeter_baseline", "the run that the fixture `speechmeter` compares with", default="")


def read_settings(config: pytest.Config) -> Settings:
    """The settings, made once a session. Raises pytest.UsageError where they contradict each other."""
    if _KEY in config.stash:
        return config.stash[_KEY]
    baseline = _path(config, "baseline")
    python = config.getoption("--speechmeter-baseline-python") or None
    if python and "/" in python:  # from where pytest was started; links are not followed, they name the environment
        python = str(config.invocation_params.dir / python)
    update = bool(config.getoption("--speechmeter-update-baseline"))
    if update and (baseline is None or python):
        fix = "leave out --speechmeter-baseline-python" if python else "name it with --speechmeter-baseline RUN"
        raise pytest.UsageError(f"--speechmeter-update-baseline: there is no run to update; {fix}")
    # others may begin in the same second, so the folder has a name of its own; it is made with the first record
    store, name = _path(config, "store") or config.rootpath, f"{datetime.now():%Y%m%d-%H%M%S}-pytest-{uuid4().hex[:8]}"
    settings = Settings(
        root=config.rootpath,
        run=Path(getattr(config, "workerinput", {}).get(_RUN) or store / name),
        baseline=baseline,
        baseline_python=python,
        update_baseline=update,
    )
    config.stash[_KEY] = settings
    return settings


def is_worker(config: pytest.Config) -> bool:
    """Whether this process is one of several of pytest-xdist."""
    return hasattr(config, "workerinput")


def send_to_worker(workerinput: dict[str, str], settings: Settings) -> None:
    """Send a worker of pytest-xdist the run that its measurements belong to."""
    workerinput[_RUN] = str(settings.run)


def _path(config: pytest.Config, name: str) -> Path | None:
    """A path: on the command line from where pytest was started, in the ini file from the root folder."""
    given, stored = config.getoption(f"--speechmeter-{name}"), config.getini(f"speechmeter_{name}")
    if given:
        return config.invocation_params.dir / str(given)
    return config.rootpath / str(stored) if stored else None
