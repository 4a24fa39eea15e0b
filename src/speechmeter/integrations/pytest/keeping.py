"""What is left of a session: its parts as one run, and the baseline brought up to date."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from speechmeter.core.errors import RunDirError
from speechmeter.core.types import FAILED, Record
from speechmeter.store.lines import write_lines
from speechmeter.store.merge import merge
from speechmeter.store.run_dir import RunDir, is_run

_GAP = 1000
"""Between old and new records of a baseline, so that nothing of theirs counts as measured side by side."""


def put_together(parts: Path, run: Path) -> None:
    """One run of all parts, which are then removed. Raises RunDirError, the parts kept, where two contradict."""
    found = sorted(path for path in parts.iterdir() if is_run(path))
    if found:
        merge(found, run)
    shutil.rmtree(parts)


def update_baseline(baseline: Path, run: Path) -> int:
    """Let the subjects of a run replace what the baseline holds of them on the same host; how many did.

    A subject with a case that failed replaces nothing. What stood there stays until the new one is complete.
    """
    fresh = RunDir(run)
    failed = {_subject(record) for record in fresh.records() if record.status in FAILED}
    new = [record for record in fresh.records() if _subject(record) not in failed]
    replaced = {_subject(record) for record in new}
    held = RunDir.existing(baseline) if baseline.exists() else None
    kept = [record for record in (held.records() if held else []) if _subject(record) not in replaced]
    start = max((record.sequence + _GAP for record in kept), default=0)
    environments = {**(held.environments() if held else {}), **fresh.environments()}
    if new:
        _write(baseline, [*kept, *(replace(record, sequence=start + record.sequence) for record in new)], environments)
    return len(replaced)


def _subject(record: Record) -> tuple[str, str, str]:
    return record.case.subject.name, record.case.subject.source, record.host


def _write(baseline: Path, records: list[Record], environments: Mapping[str, Mapping[str, Any]]) -> None:
    used = {record.environment for record in records}
    try:
        baseline.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(mkdtemp(prefix=f".{baseline.name}-", dir=baseline.parent))
        write_lines(draft / "records.jsonl", (record.to_json() for record in records))
        write_lines(draft / "environments.jsonl", (data for key, data in environments.items() if key in used))
        draft.chmod(0o755)
        old = draft.with_name(f"{draft.name}-old")
        if baseline.exists():
            baseline.replace(old)
        draft.replace(baseline)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise RunDirError(
            f"cannot be written: {error.strerror}", where=str(baseline), fix="name another --speechmeter-baseline"
        ) from error
