"""A loss is tried once a case and build: what was found is known to the next process, until anything changes."""

import os
import time
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from speechmeter.subjects.losses.agreement import Deviation  # noqa: E402
from speechmeter.subjects.losses.known import BY_NAME  # noqa: E402
from speechmeter.subjects.losses.remembered import remembered  # noqa: E402

OURS = BY_NAME["ours"]
GOOD = [Deviation(name="random", loss=1e-8, allowed_loss=1e-6), Deviation(name="one", skipped="cannot")]


class Found:
    """Counts how often it is asked."""

    def __init__(self, deviations=GOOD):
        self.deviations, self.calls = deviations, 0

    def __call__(self):
        self.calls += 1
        return self.deviations


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def ask(find, known=OURS, case=(torch.float32, 0, 5)):
    return remembered(known, case, "cpu", find)


def test_the_second_process_of_a_case_finds_what_the_first_found():
    find = Found()
    assert ask(find) == ask(find) == GOOD
    assert find.calls == 1


@pytest.mark.parametrize(
    "other",
    [{"known": BY_NAME["ours-torch"]}, {"case": (torch.float16, 0, 5)}, {"case": (torch.float32, 1, 5)}],
    ids=["loss", "dtype", "seed"],
)
def test_another_loss_or_case_is_tried_itself(other):
    find = Found()
    ask(find)
    ask(find, **other)
    assert find.calls == 2


def test_a_changed_file_of_the_loss_is_another_build(monkeypatch, tmp_path):
    package = tmp_path / "builtloss"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    find, known = Found(), replace(OURS, package="builtloss")
    ask(find, known)
    ask(find, known)
    (package / "kernel.so").write_bytes(b"rebuilt")
    ask(find, known)
    assert find.calls == 2


def test_a_fault_is_never_remembered():
    find = Found([Deviation(name="random", loss=1.0, allowed_loss=1e-6)])
    ask(find)
    ask(find)
    assert find.calls == 2


def test_an_entry_of_yesterday_or_one_that_cannot_be_read_is_tried_again(cache):
    find = Found()
    ask(find)
    (entry,) = cache.rglob("*.json")
    yesterday = time.time() - 25 * 3600
    os.utime(entry, (yesterday, yesterday))
    ask(find)
    assert find.calls == 2
    entry.write_text("{")
    assert ask(find) == GOOD
    assert find.calls == 3


def test_a_cache_that_cannot_be_written_costs_a_trial_and_nothing_else(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/x")
    find = Found()
    assert ask(find) == ask(find) == GOOD
    assert find.calls == 2
