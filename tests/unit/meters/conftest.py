"""What tests of meters share: the processes that other tests left are none of the model's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from speechmeter.core import process_tree
from speechmeter.core.process_tree import started_processes


@pytest.fixture(autouse=True)
def left_by_others(monkeypatch: pytest.MonkeyPatch) -> Iterator[frozenset[int]]:
    """Processes below this one when a test begins, such as a tracker of multiprocessing; the meters do not see them."""
    others, below = frozenset(started_processes()), process_tree._below
    monkeypatch.setattr(process_tree, "_below", lambda top: [pid for pid in below(top) if pid not in others])
    yield others
