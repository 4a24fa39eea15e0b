"""A large file of records is checked once: what was found is kept for as long as neither file nor check changes."""

import os

import pytest
from conftest import make_case, make_record

from speechmeter.core import metrics
from speechmeter.core.types import Measurement
from speechmeter.store import verified
from speechmeter.store.run_dir import RunWriter
from speechmeter.store.verified import is_verified


@pytest.fixture
def checks(monkeypatch, tmp_path):
    """Every line that is checked, with files of any size remembered at once."""
    seen = []
    real = verified._as_given
    monkeypatch.setattr(verified, "_as_given", lambda line: seen.append(line) or real(line))
    monkeypatch.setattr(verified, "_LARGE", 0)
    monkeypatch.setattr(verified, "_SETTLED_NS", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return seen


@pytest.fixture
def file(tmp_path):
    with RunWriter(tmp_path / "run") as store:
        store.begin("models: [log-mel]\n")
        store.append(make_record(make_case(), Measurement.of(metrics.LATENCY, [0.5])))
    return tmp_path / "run" / "records.jsonl"


def verdict(path):
    with path.open("rb") as opened:
        return is_verified(opened)


def test_a_sound_file_is_checked_once(file, checks, tmp_path):
    assert [verdict(file), verdict(file)] == [True, True]
    assert len(checks) == 1
    assert (tmp_path / "cache/speechmeter/checked").stat().st_mode & 0o077 == 0


def test_a_file_that_was_changed_is_checked_again_though_its_size_and_time_are_as_before(file, checks):
    assert verdict(file)
    before = file.stat()
    file.write_bytes(file.read_bytes().replace(b'"ok"', b'"no"'))
    while file.stat().st_ctime_ns == before.st_ctime_ns:  # within one tick of the kernel's clock
        file.touch()
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert not verdict(file)
    assert len(checks) == 2


def test_a_damaged_file_is_not_remembered(file, checks):
    file.write_bytes(b"{}\n" + file.read_bytes())
    assert [verdict(file), verdict(file)] == [False, False]
    assert len(checks) == 2


def test_another_check_looks_again(file, checks, monkeypatch, tmp_path):
    assert verdict(file)
    (tmp_path / "other.py").write_text("# other rules")
    monkeypatch.setattr(verified.schema, "__file__", str(tmp_path / "other.py"))
    assert verdict(file)
    assert len(checks) == 2


def test_a_file_that_was_written_just_now_is_not_remembered(file, checks, monkeypatch):
    monkeypatch.setattr(verified, "_SETTLED_NS", 10**18)
    assert [verdict(file), verdict(file)] == [True, True]
    assert len(checks) == 2


def test_nothing_is_written_for_a_small_file_and_a_home_that_cannot_be_written_is_no_error(
    file, checks, monkeypatch, tmp_path
):
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/x")
    assert verdict(file)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(verified, "_LARGE", 10**6)
    assert verdict(file)
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("text", [b"", b"\n"])
def test_a_file_without_lines_is_sound(file, checks, text):
    file.write_bytes(text)
    assert verdict(file)


def test_a_torn_last_line_is_not_left_to_another_parser(file, checks):
    file.write_bytes(file.read_bytes() + file.read_bytes()[:-1])
    assert not verdict(file)
