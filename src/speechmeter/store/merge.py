"""Runs of several machines as one run directory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from speechmeter.core.bounded import MIB, read_bytes
from speechmeter.core.drafts import draft_folder
from speechmeter.core.errors import RunDirError
from speechmeter.core.types import Record
from speechmeter.store.artifacts import artifacts_of, copy_artifacts, own_name
from speechmeter.store.gather import Gathered, gather
from speechmeter.store.lines import write_lines
from speechmeter.store.run_dir import RunDir, is_free

_PLANS = "plans"
_LARGEST_PLAN = MIB


@dataclass(frozen=True, kw_only=True)
class Merged:
    """A run that was put together: its place, what it holds, and the artifacts that were left out."""

    path: Path
    gathered: Gathered
    left_out: tuple[str, ...]


def merge(paths: Sequence[Path], output: Path) -> Merged:
    """Write the records, environments, plans and artifacts of all runs into `output`, which must be free.

    Raises RunDirError where it is taken, a run is none, or two runs contradict each other; nothing is then written.
    """
    if not is_free(output):
        raise RunDirError("something stands here already", where=str(output), fix="choose another -o")
    runs = [RunDir.existing(path) for path in paths]
    gathered = gather(runs)
    try:
        output.absolute().parent.mkdir(parents=True, exist_ok=True)
        with draft_folder(output.absolute().parent) as draft:
            left_out = _write(RunDir(draft), runs, gathered)
            draft.chmod(0o755)
            draft.replace(output)
    except OSError as error:
        raise _unwritable(output, error) from error
    return Merged(path=output, gathered=gathered, left_out=tuple(left_out))


def _unwritable(output: Path, error: OSError) -> RunDirError:
    return RunDirError(f"cannot be written: {error.strerror}", where=str(output), fix="choose another place with -o")


def _write(target: RunDir, runs: Sequence[RunDir], gathered: Gathered) -> list[str]:
    write_lines(target.records_path, (record.to_json() for record in gathered.records))
    write_lines(target.environments_path, gathered.environments.values())
    target.artifacts_path.mkdir()
    left_out: list[str] = []
    for run, hosts in zip(runs, gathered.hosts, strict=True):
        names = _names(run, hosts, gathered.records)
        left_out += copy_artifacts(run.artifacts_path, target.artifacts_path, names, run.path.resolve().name)
    _write_plans(target, runs)
    return left_out


def _names(run: RunDir, hosts: Mapping[str, str], merged: Iterable[Record]) -> dict[str, set[str]]:
    """From the folder of a case to its names in the merged run: that of each host whose records read it.

    Where several hosts hold a case, each has its own: one without a host's name is read for all that have none.
    """
    holders: dict[str, set[str]] = {}
    for record in merged:
        holders.setdefault(record.case.id, set()).add(record.host)
    names: dict[str, set[str]] = {}
    for record in run.records():
        case_id = record.case.id
        name = own_name(case_id, hosts[record.host]) if len(holders[case_id]) > 1 else case_id
        names.setdefault(artifacts_of(run.artifacts_path, record).name, set()).add(name)
    return names


def _write_plans(target: RunDir, runs: Sequence[RunDir]) -> None:
    """One plan for all is the plan; different ones are kept among the artifacts."""
    plans = [
        (run.path.resolve().name, read_bytes(run.plan_path, _LARGEST_PLAN)) for run in runs if run.plan_path.is_file()
    ]
    if len({text for _, text in plans}) == 1:
        target.plan_path.write_bytes(plans[0][1])
        return
    folder = target.artifacts_path / _PLANS
    for number, (name, text) in enumerate(plans):
        folder.mkdir(exist_ok=True)
        (folder / f"{number}-{name}.yaml").write_bytes(text)
