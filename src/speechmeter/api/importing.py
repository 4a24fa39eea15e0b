"""Results of other tools as a run, so that every table, comparison and chart can show them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from speechmeter.core import stated
from speechmeter.core.axes import Axes
from speechmeter.core.errors import InputError, for_python
from speechmeter.core.protocol import OtherProtocol
from speechmeter.core.quality import IMPORTED
from speechmeter.core.types import Case, Record, Spec
from speechmeter.store.foreign.found import Benchmark, Found
from speechmeter.store.foreign.recognise import read
from speechmeter.store.run_dir import RunWriter, is_free, is_run, new_run

_BLOCK = 2**20


@dataclass(frozen=True, kw_only=True)
class ImportedFile:
    """What became of one file: its tool, how many benchmarks and figures were carried over, and what was not."""

    path: Path
    tool: str
    version: str
    benchmarks: int
    figures: int
    left_out: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ImportedRun:
    """A run that was made of files of other tools."""

    path: Path
    files: tuple[ImportedFile, ...]


@for_python
def import_results(
    files: Sequence[str | Path], output: str | Path | None = None, *, force: bool = False
) -> ImportedRun:
    """Write the figures of result files as a run; each keeps the definition of its tool.

    Several files become one run. Files about the same case become its rounds. Raises InputError for a file that no
    reader knows, or without a figure, and for an output that exists, unless `force`.
    """
    paths = list(dict.fromkeys(map(Path, files)))
    found = [(path, read(path)) for path in paths]
    for path, one in found:
        if not any(m.values for benchmark in one.benchmarks for m in benchmark.measurements):
            raise InputError(f"{one.tool} wrote no figure into this file", where=str(path), fix="import another one")
    target = Path(output) if output is not None else new_run(IMPORTED)
    if not is_free(target) and not (force and is_run(target)):
        fix = "add `force` to replace the run, or choose another directory"
        raise InputError(f"{target} already exists", key="output", fix=fix)
    source, records = _source_text(found), _records(found)
    with RunWriter(target) as writer:
        writer.clear()
        writer.begin(source)
        for record in records:
            writer.append(record)
    return ImportedRun(path=target, files=tuple(_report(path, one) for path, one in found))


def _report(path: Path, found: Found) -> ImportedFile:
    figures = sum(bool(m.values) for benchmark in found.benchmarks for m in benchmark.measurements)
    return ImportedFile(
        path=path, tool=found.tool, version=found.version, benchmarks=len(found.benchmarks), figures=figures,
        left_out=found.left_out,
    )  # fmt: skip


def _records(found: Sequence[tuple[Path, Found]]) -> list[Record]:
    rounds: Counter[str] = Counter()
    records: list[Record] = []
    for _, one in found:
        for benchmark in one.benchmarks:
            case = _case(one, benchmark)
            records.append(_record(case, benchmark, round_=rounds[case.id], sequence=len(records)))
            rounds[case.id] += 1
    return records


def _case(found: Found, benchmark: Benchmark) -> Case:
    about = {"mode": stated.MODE, "tool": found.tool}
    about |= {"version": found.version} if found.version else {}
    shared = frozenset(("clock", "sync", "seed"))  # which say nothing of another tool
    return Case(
        subject=Spec(plugin=IMPORTED, name=benchmark.model, source=found.tool),
        workload=Spec(plugin=IMPORTED, name=benchmark.input, options=benchmark.options),
        axes=Axes(dict(benchmark.axes)),
        meters=(IMPORTED,),
        protocol=OtherProtocol(extra=about, absent=shared),
    )


def _record(case: Case, benchmark: Benchmark, *, round_: int, sequence: int) -> Record:
    return Record(
        case=case, round=round_, sequence=sequence, status="ok", started=benchmark.started, wall_s=benchmark.wall_s,
        measurements=benchmark.measurements, warnings=benchmark.warnings,
    )  # fmt: skip


def _source_text(found: Sequence[tuple[Path, Found]]) -> str:
    """What the run keeps in the place of a plan: where its figures come from."""
    files = [
        {"file": path.name, "sha256": _sha256(path), "tool": one.tool, "version": one.version,
         "not carried over": list(one.left_out)}
        for path, one in found
    ]  # fmt: skip
    head = "# This run was imported with `speechmeter import`. Speechmeter measured none of it and cannot rerun it.\n"
    return head + yaml.safe_dump({IMPORTED: files}, sort_keys=False, allow_unicode=True, width=120)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
