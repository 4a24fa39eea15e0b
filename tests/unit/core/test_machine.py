import platform

import pytest

from speechmeter.core.machine import allocator, allocator_name, host_name

MAPS = """55d0c000-55d0d000 r-xp 00000000 fe:00 1234 /usr/bin/python3.11
7f10a000-7f10b000 r-xp 00000000 fe:00 5678 {library}
7f10c000-7f10d000 rw-p 00000000 00:00 0
7ffd0000-7ffd1000 rw-p 00000000 00:00 0 [stack]
"""


@pytest.mark.parametrize(
    ("library", "name"),
    [
        ("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", "jemalloc"),
        ("/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4.5.10", "tcmalloc"),
        ("/opt/lib/libmimalloc.so.2.1", "mimalloc"),
    ],
)
def test_a_replaced_allocator_is_named_by_its_library(library, name):
    assert allocator_name(MAPS.format(library=library)) == name


@pytest.mark.parametrize("path", ["/home/jemalloc/notes.txt", "/srv/tcmalloc/lib/libc.so.6"])
def test_a_folder_of_that_name_is_no_allocator(path):
    assert allocator_name(MAPS.format(library=path)) == (platform.libc_ver()[0] or "unknown")


def test_the_thresholds_are_told_with_the_name(monkeypatch):
    monkeypatch.setenv("MALLOC_MMAP_THRESHOLD_", "65536")
    assert allocator().startswith(allocator_name())
    assert "MALLOC_MMAP_THRESHOLD_=65536" in allocator()


def test_the_machine_is_called_as_told_and_by_its_own_name_otherwise(monkeypatch):
    monkeypatch.setenv("SPEECHMETER_HOST", " orin-1 ")
    assert host_name() == "orin-1"
    monkeypatch.setenv("SPEECHMETER_HOST", "")
    assert host_name() == platform.node()
