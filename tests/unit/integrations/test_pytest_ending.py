"""The end of a session: what is kept, what is printed, and the exit code."""

import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest
from run_histories import write_run

from speechmeter.integrations.pytest.plugin import pytest_sessionfinish, pytest_terminal_summary
from speechmeter.integrations.pytest.settings import _KEY, Settings

OK, FAILED, BROKEN = pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERNAL_ERROR


@pytest.fixture
def settings(tmp_path):
    run = tmp_path / "runs/now"
    return Settings(root=tmp_path, run=run, baseline=None, baseline_python=None, update_baseline=False)


def ended(settings, exitstatus=OK):
    """The exit code of a session that would have ended with this one, and what it printed."""
    config = SimpleNamespace(stash=pytest.Stash())
    config.stash[_KEY] = settings
    session = SimpleNamespace(config=config, exitstatus=exitstatus)
    pytest_sessionfinish(session)
    printed = []
    pytest_terminal_summary(SimpleNamespace(stats={}, section=printed.append, write_line=printed.append), config)
    return session.exitstatus, "\n".join(printed)


def contradicting(settings):
    for name, latency_s in (("a", 1.0), ("b", 2.0)):
        write_run(settings.parts / name, 1, [latency_s])


def test_a_session_that_is_kept_ends_as_its_tests_did(settings):
    write_run(settings.parts / "a", 1, [1.0])
    assert ended(settings) == (OK, f"speechmeter\nall results: speechmeter show {settings.run}")


def test_a_session_that_cannot_be_put_together_fails_and_says_where_its_parts_are(settings):
    contradicting(settings)
    code, printed = ended(settings)
    assert code == BROKEN
    assert f"the measurements could not be merged; they are in {settings.parts}: " in printed
    assert "both hold round 0" in printed
    assert len(list(settings.parts.iterdir())) == 2


def test_failed_tests_keep_their_exit_code(settings):
    contradicting(settings)
    assert ended(settings, FAILED)[0] == FAILED


def test_a_baseline_that_cannot_be_updated_fails_the_session_and_its_run_is_kept(settings, tmp_path):
    write_run(settings.parts / "a", 1, [1.0])
    (tmp_path / "baseline").write_text("a file")
    code, printed = ended(replace(settings, baseline=tmp_path / "baseline", update_baseline=True))
    assert code == BROKEN
    assert f"all results: speechmeter show {settings.run}\nthe baseline was not updated: " in printed
    assert (settings.run / "records.jsonl").is_file()


def test_parts_that_cannot_be_removed_do_no_harm(settings, monkeypatch):
    write_run(settings.parts / "a", 1, [1.0])
    remove = shutil.rmtree

    def rmtree(path, ignore_errors=False, **more):
        if path != settings.parts:
            remove(path, ignore_errors, **more)
        elif not ignore_errors:
            raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(shutil, "rmtree", rmtree)
    assert ended(settings) == (OK, f"speechmeter\nall results: speechmeter show {settings.run}")


def test_parts_that_cannot_be_read_fail_the_session(settings, monkeypatch):
    write_run(settings.parts / "a", 1, [1.0])
    monkeypatch.setattr(type(settings.parts), "iterdir", _denied)
    code, printed = ended(settings)
    assert code == BROKEN
    assert "Permission denied" in printed


def _denied(path):
    raise PermissionError(13, "Permission denied")
