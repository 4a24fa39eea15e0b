"""`speechmeter export`: from a run to a tracker by name."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from speechmeter.api import querying
from speechmeter.api.figures import exported_cases
from speechmeter.core.errors import InputError, for_python
from speechmeter.core.files import check_free, written_by_user
from speechmeter.core.hosts import hosts_apart
from speechmeter.core.plugins import nearest
from speechmeter.core.printable import one_line
from speechmeter.integrations.trackers import vllm
from speechmeter.store.run_dir import RunDir

TRACKERS = ("mlflow", "wandb", "tensorboard", "openmetrics", "parquet", "vllm")
_FILES = {"openmetrics": ".prom", "parquet": ".parquet"}
"""Those that are one file, with its usual ending."""
_LONGEST = 300
_PACKAGES = ("mlflow", "wandb", "tensorboard")


@for_python
def export_run(
    run: str | Path,
    to: str,
    output: str | None = None,
    *,
    metrics: Sequence[str] = (),
    every_scope: bool = False,
    force: bool = False,
) -> str:
    """Give the figures of a run, with their intervals, to a tracker; a line that says where they are.

    Raises InputError for a tracker that is unknown or not installed, a metric that the run does not have, a file
    that exists, and a target that the tracker cannot write to.
    """
    if to not in TRACKERS:
        raise InputError(f"unknown tracker {to!r}", key="to", fix=nearest(to, list(TRACKERS)))
    if to in _PACKAGES and find_spec(to) is None:
        raise InputError(f"{to} is not installed", key="to", fix=f"pip install {to}")
    store = RunDir.existing(Path(run))
    name = store.path.resolve().name
    if to in _FILES:
        output = output or f"{name}{_FILES[to]}"
        check_free(Path(output), force=force)
    if to == "vllm":
        check_free(vllm.path_of(output or name), force=force, makes_folder=True)
    if to == "parquet":
        if metrics or every_scope:
            raise InputError("a Parquet file has all figures", key="metric", fix="choose rows when you read it")
        count = querying.export([store.path], "SELECT * FROM estimates", output or "", force=force)
        return f"written: {output}, {count} rows"
    cases = exported_cases(hosts_apart(store.records()), metrics, every_scope=every_scope)
    if not cases:
        raise InputError("the run has no such figures", where=str(run), fix="leave out `metric`")
    write = import_module(f"speechmeter.integrations.trackers.{to}").write
    try:
        with written_by_user(Path(output or name)):
            return str(write(cases, name, output))
    except InputError:
        raise
    except Exception as error:  # each tracker has errors of its own
        fix = "check the target; what was exported before the error stays there"
        raise InputError(f"{to}: {one_line(str(error))[:_LONGEST]}", key="output", fix=fix) from error
