"""The end of a session: its measurements become one run, and the baseline is updated."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from speechmeter.core.errors import RunDirError, SpeechmeterError
from speechmeter.core.files import draft_folder
from speechmeter.core.types import Record
from speechmeter.integrations.pytest.settings import Settings
from speechmeter.store.lines import write_lines
from speechmeter.store.merge import after, merge
from speechmeter.store.run_dir import RunDir, is_free, is_run


def keep(settings: Settings) -> Iterator[str]:
    """Make one run of a session, and update the baseline if asked to; a line on each.

    Raises SpeechmeterError, which says where the measurements are.
    """
    with _or_else(f"the measurements could not be merged; they are in {settings.parts}"):
        put_together(settings.parts, settings.run)
    yield f"all results: speechmeter show {settings.run}"
    if settings.update_baseline and settings.baseline is not None:
        with _or_else("the baseline was not updated"):
            count = update_baseline(settings.baseline, settings.run)
        yield f"{count} updated in the baseline {settings.baseline}"


@contextmanager
def _or_else(consequence: str) -> Iterator[None]:
    try:
        yield
    except (SpeechmeterError, OSError) as error:
        raise SpeechmeterError(f"{consequence}: {error}") from error


def put_together(parts: Path, run: Path) -> None:
    """Merge all parts into one run and remove them. Raises RunDirError where two contradict; both are kept."""
    found = sorted(path for path in parts.iterdir() if is_run(path))
    if found:
        merge(found, run)
    shutil.rmtree(parts, ignore_errors=True)


def update_baseline(baseline: Path, run: Path) -> int:
    """Replace subjects of the baseline by those of a run on the same host. Returns how many were replaced or added.

    A subject with a case that failed or could not be tried replaces nothing. Only the records and the environments are
    rewritten, each file at once. Raises RunDirError where that is not possible.
    """
    fresh = RunDir(run)
    tried = [record for record in fresh.records() if record.status != "skipped"]
    unmeasured = {_subject(record) for record in tried if record.status != "ok"}
    new = [record for record in tried if _subject(record) not in unmeasured]
    replaced = {_subject(record) for record in new}
    held = RunDir(baseline) if is_free(baseline) else RunDir.existing(baseline)
    old = held.records()
    kept = [record for record in old if _subject(record) not in replaced]
    used = {record.environment for record in [*old, *new]}
    environments = {**held.environments(), **fresh.environments()}
    if not new:
        return 0
    try:
        held.path.mkdir(parents=True, exist_ok=True)
        for skipped in held.skipped:  # the new file is written without them
            shutil.copyfile(skipped.path, skipped.path.with_name(f"{skipped.path.name}.damaged"))
        with draft_folder(held.path) as folder:
            draft = RunDir(folder)
            write_lines(draft.environments_path, [data for key, data in environments.items() if key in used])
            write_lines(draft.records_path, (record.to_json() for record in [*kept, *after(new, kept)]))
            # environments first: those of old records are among them, so that the folder is whole at any moment
            draft.environments_path.replace(held.environments_path)
            draft.records_path.replace(held.records_path)
    except OSError as error:
        raise RunDirError(
            f"cannot be written: {error.strerror}", where=str(held.path), fix="use another --speechmeter-baseline"
        ) from error
    return len(replaced)


def _subject(record: Record) -> tuple[str, str, str]:
    return record.case.subject.name, record.case.subject.source, record.host
