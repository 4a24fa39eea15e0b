"""Memory of processes that a model started: real ones of known size, and what is said of those that cannot be read."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from speechmeter.core import process_tree
from speechmeter.core.process_tree import Size, size_of, started_bytes, started_processes
from speechmeter.meters import started
from speechmeter.meters.resident import HighWaterMark, Reading
from speechmeter.meters.started import AT_DIFFERENT_TIMES, COME_AND_GONE, NOT_SHARED_OUT, WithStarted

MIB = 2**20
pytestmark = pytest.mark.skipif(
    not HighWaterMark().usable() or not Path("/proc/self/smaps_rollup").exists(),
    reason="needs the kernel's marks and shares",
)

HOLDER = """
import mmap, sys
held = []
for line in sys.stdin:
    mib, keep = line.split()
    pages = mmap.mmap(-1, int(mib) * 2**20)
    pages[::4096] = b"1" * (len(pages) // 4096)
    held += [pages] if keep == "keep" else []
    del pages
    print("filled", flush=True)
"""
"""Fills so many MiB for each line, and keeps them or gives them back."""
ABOVE = "import subprocess, sys; subprocess.run([sys.executable, '-ISc', sys.argv[1]])"


class AtRest:
    """A probe of a process that does not grow."""

    source = "none"
    restarts = True

    def read(self, work):
        work()
        return Reading(growth_bytes=0, before_bytes=0, peak_bytes=0)


@contextmanager
def holder(*program):
    """Ask it for memory: `ask("200 keep")` returns once every page is filled."""
    command = [sys.executable, "-ISc", *(program or (HOLDER,))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def ask(line):
            print(line, file=process.stdin, flush=True)
            assert process.stdout.readline() == "filled\n"

        ask("1 keep")  # it is running, and the interpreter has started
        yield SimpleNamespace(ask=ask, process=process)
        process.stdin.close()
        process.wait()


def near(value, mib, slack_mib=2):
    return abs(value - mib * MIB) < slack_mib * MIB


def test_what_a_child_holds_and_how_far_it_grows_is_read():
    with holder() as child:
        child.ask("200 keep")
        reading = WithStarted(AtRest()).read(lambda: child.ask("64 keep"))
    assert near(reading.growth_bytes, 64)
    assert reading.before_bytes > 200 * MIB
    assert reading.peak_bytes == reading.started_bytes == reading.before_bytes + reading.growth_bytes
    assert reading.caveat == ""


def test_a_short_peak_of_a_child_is_read_by_its_mark_and_again_by_a_smaller_one():
    with holder() as child:
        probe = WithStarted(AtRest())
        large, small = (probe.read(lambda: child.ask(f"{mib} drop")).growth_bytes for mib in (128, 48))  # noqa: B023
    assert near(large, 128)
    assert near(small, 48)


def test_a_grandchild_counts_too():
    with holder(ABOVE, HOLDER) as child:
        child.ask("200 keep")
        assert started_bytes() > 200 * MIB
        reading = WithStarted(AtRest()).read(lambda: child.ask("64 keep"))
        assert near(reading.growth_bytes, 64)
    assert started_processes() == []


def test_a_child_that_ends_within_the_call_is_read_by_looking_and_called_a_lower_bound(monkeypatch):
    seen = []

    def look(pid):
        seen.append(size_of(pid))
        return seen[-1]

    monkeypatch.setattr(started, "size_of", look)

    def work():
        with holder() as child:
            child.ask("96 keep")
            begun = len(seen)
            while len(seen) < begun + 2:  # one look that began after it was filled has ended
                pass

    reading = WithStarted(AtRest()).read(work)
    assert 96 * MIB < reading.growth_bytes == reading.started_bytes < 110 * MIB
    assert reading.before_bytes == 0
    assert reading.caveat == COME_AND_GONE


def test_two_children_that_grow_are_an_upper_bound():
    with holder() as one, holder() as other:

        def work():
            one.ask("32 drop")
            other.ask("48 drop")

        reading = WithStarted(AtRest()).read(work)
    assert near(reading.growth_bytes, 80, 3)
    assert reading.caveat == AT_DIFFERENT_TIMES


def test_pages_that_several_map_are_shared_out(tmp_path):
    file = tmp_path / "weights"
    file.write_bytes(b"1" * (64 * MIB))
    opened = f"(held.append(open({str(file)!r}, 'r+b')), held[-1])[1]"
    mapped = HOLDER.replace("mmap.mmap(-1, int(mib) * 2**20)", f"mmap.mmap({opened}.fileno(), 0)")
    with holder(mapped) as one, holder(mapped) as other:
        both = [size_of(child.process.pid) for child in (one, other)]
        assert all(size.resident_bytes > 64 * MIB for size in both)
        assert 64 * MIB < sum(size.share_bytes for size in both) < 64 * MIB + 24 * MIB


def test_without_shares_the_whole_counts_and_the_bound_is_told(monkeypatch):
    def whole(pid):
        resident = process_tree.resident_bytes([pid])
        return Size(resident_bytes=resident, share_bytes=resident, is_shared_out=not resident)

    monkeypatch.setattr(started, "size_of", whole)
    with holder() as child:
        reading = WithStarted(AtRest()).read(lambda: child.ask("64 keep"))
    assert near(reading.growth_bytes, 64)
    assert reading.caveat == NOT_SHARED_OUT


def test_a_process_that_starts_none_reads_as_before():
    reading = Reading(growth_bytes=5, before_bytes=1, peak_bytes=6)
    probe = WithStarted(SimpleNamespace(source="VmHWM", restarts=True, read=lambda work: reading), processes=list)
    assert probe.read(lambda: None) is reading


def test_only_before_exec_a_process_borrows_memory():
    with holder() as child:
        assert not process_tree.borrows_memory(child.process.pid)
    pid = os.fork()
    if not pid:
        signal.pause()
    try:
        assert not process_tree.borrows_memory(pid)  # a copy has pages of its own
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_the_kernels_lists_agree_with_all_of_proc(left_by_others):
    with holder(ABOVE, HOLDER):
        assert set(started_processes()) == set(process_tree.below(process_tree.os.getpid())) - left_by_others
        assert len(started_processes()) == 2
