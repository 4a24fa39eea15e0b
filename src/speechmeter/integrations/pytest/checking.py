"""The fixture itself: measure inside a test, in fresh processes, and judge by limits and by the baseline."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from speechmeter.api.runs import Run, run_study
from speechmeter.api.starting import Options
from speechmeter.core.errors import InputError, InterruptedRun, SpeechmeterError, command_line
from speechmeter.integrations.pytest.judging import Finding, Judge, figures_of, findings_of, of_error, overall
from speechmeter.integrations.pytest.marks import MARK, Asked, asked_by
from speechmeter.integrations.pytest.naming import case_name, load_of
from speechmeter.integrations.pytest.settings import PROPERTY, Settings
from speechmeter.launch.recorder import Event
from speechmeter.plan.study import study_from_python

_SEARCH = (
    "a test cannot search for the largest input",
    f"remove this argument, and use: {command_line('run', find='max-batch')}",
)
_REFUSED = {
    "models": ("the first argument is the model", "remove it, and measure each model in a separate call"),
    **dict.fromkeys(("find", "find_most", "find_within", "find_margin"), _SEARCH),
}
"""Keys of a plan that a test may not give: what is wrong with them, and what to do instead."""


class Speechmeter:
    """What the fixture `speechmeter` gives to a test."""

    def __init__(self, test: pytest.FixtureRequest, settings: Settings, write: Callable[[str], None]) -> None:
        self._test = test
        self._settings = settings
        self._write = write
        self._names: set[str] = set()

    def measure(self, subject: str | Callable[[], Any], *, name: str | None = None, **plan: Any) -> Run:
        """Measure without a verdict: the records, for assertions of the test's own.

        `subject` is a factory at the top level of a file, its name, or a model as plans name it (`log-mel`); `plan`
        holds other keys of a plan. The test fails if a case fails or the input is bad, and is skipped if this machine
        lacks what it needs.
        """
        __tracebackhide__ = True
        return self._judged(subject, name, plan, figures_of)

    def check(self, subject: str | Callable[[], Any], *, name: str | None = None, **plan: Any) -> Run:
        """Measure, then judge by the marker's limits and by the baseline. Arguments are those of `measure`.

        The test fails on a regression, a figure beyond its limit, or a case that fails. It is skipped, with the
        reason, where none of this can be decided.
        """
        __tracebackhide__ = True
        return self._judged(subject, name, plan, findings_of)

    def _judged(self, subject: Any, name: str | None, plan: Mapping[str, Any], judge: Judge) -> Run:
        __tracebackhide__ = True
        named = case_name(self._test, self._settings.root)
        run: Run | None = None
        try:
            if not isinstance(name, str | None):
                raise InputError(
                    f"the name must be a string, not {name!r}", where="argument 'name'", fix="such as name='encoder'"
                )
            for key in plan:
                if key in _REFUSED:
                    reason, fix = _REFUSED[key]
                    raise InputError(reason, where=f"argument {key!r}", fix=fix)
            named = case_name(self._test, self._settings.root, name)
            asked = asked_by(self._test.node.iter_markers(MARK))
            if named in self._names:
                raise InputError(f"this test measures {named} twice", fix="give each a name: check(…, name='encoder')")
            self._names.add(named)
            run = self._measured(subject, named, asked, plan)
            findings = list(judge(run.path, self._settings, asked))
        except InterruptedRun:
            raise KeyboardInterrupt from None
        except SpeechmeterError as error:
            findings = [of_error(named, error)]
        self._settle(findings)
        assert run is not None
        return run

    def _measured(self, subject: Any, name: str, asked: Asked, plan: Mapping[str, Any]) -> Run:
        # a test that is run again replaces its own part
        part = self._settings.parts / sha256(name.encode()).hexdigest()[:16]
        root = self._settings.root
        with working_in(root):
            entry = {"name": name, "load": load_of(subject, self._test, root)}
            keys = {"name": "pytest", "meters": asked.meters, **asked.plan, **plan, "models": [entry]}
            study = study_from_python(keys)
            asked.check_metrics()
            with turn():
                options = Options(output=part, baseline_python=self._settings.baseline_python, force=True)
                return run_study(study, options, self._watch)

    def _watch(self, event: Event) -> None:
        if event.kind == "finished":
            self._write(f"  speechmeter: [{event.done}/{event.total}] {event.case.label}")

    def _settle(self, findings: Sequence[Finding]) -> None:
        """Keep the findings for the summary, and end the test where they are not all good."""
        __tracebackhide__ = True
        self._test.node.user_properties.append((PROPERTY, [finding.row() for finding in findings]))
        outcome = overall(findings)
        lines = [finding.line() for finding in findings if finding.outcome == outcome]
        if outcome == "failed":
            pytest.fail("\n".join(lines), pytrace=False)
        if outcome == "undecided":
            pytest.skip("; ".join(lines))


@contextmanager
def turn() -> Iterator[None]:
    """Wait for the measurements of other workers and sessions of this user. The lock ends with the process."""
    import fcntl

    lock = os.open(Path(tempfile.gettempdir()) / f"speechmeter-{os.getuid()}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    """Change the working directory, so that paths in records have the same start in every session."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
