"""Where a session of a test suite keeps its measurements."""

from datetime import datetime
from types import SimpleNamespace

import pytest

from speechmeter.integrations.pytest import settings
from speechmeter.integrations.pytest.settings import read_settings, send_to_worker


def config(root, **more):
    """As much of pytest's configuration as is read, nothing given on the command line."""
    return SimpleNamespace(
        stash=pytest.Stash(),
        rootpath=root,
        getoption=lambda name: None,
        getini={"speechmeter_store": "runs"}.get,
        invocation_params=SimpleNamespace(dir=root),
        **more,
    )


def test_two_sessions_of_the_same_second_share_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(settings, "datetime", SimpleNamespace(now=lambda: datetime(2026, 5, 1)))
    first, second = (read_settings(config(tmp_path)) for _ in range(2))
    assert first.run != second.run
    assert first.parts != second.parts
    assert {one.run.parent for one in (first, second)} == {tmp_path / "runs"}


def test_workers_share_the_folder_of_their_controller(tmp_path):
    controller = read_settings(config(tmp_path))
    workerinput = {}
    send_to_worker(workerinput, controller)
    workers = [read_settings(config(tmp_path, workerinput=workerinput)) for _ in range(2)]
    assert {worker.parts for worker in workers} == {controller.parts}


def test_a_session_that_measures_nothing_makes_no_folder(tmp_path):
    read_settings(config(tmp_path))
    assert list(tmp_path.iterdir()) == []
