"""Memory that is there, but not in one piece: read from torch's own words."""

import pytest

from speechmeter.analysis.frontier import Pieces, in_pieces
from speechmeter.engine.failures import classify

SAID = (
    "CUDA out of memory. Tried to allocate {asked}. GPU 0 has a total capacity of 139.80 GiB of which {free} is free. "
    "Including non-PyTorch memory, this process has 93.69 GiB memory in use. {allowed}Of the allocated memory 46.98 "
    "GiB is allocated by PyTorch, and {unused} is reserved by PyTorch but unallocated. If reserved but …"
)


def said(asked="46.14 GiB", free="46.10 GiB", unused="46.04 GiB", allowed=""):
    return SAID.format(asked=asked, free=free, unused=unused, allowed=allowed)


def test_what_is_free_and_what_is_held_together_would_have_been_enough():
    assert in_pieces(said()) == Pieces(unused_gib=46.04, whole_gib=pytest.approx(139.12))


@pytest.mark.parametrize("unused, gib", [("20.00 MiB", 20 / 2**10), ("31.50 KiB", 31.5 / 2**20), ("512 bytes", 2**-21)])
def test_units_are_read(unused, gib):
    assert in_pieces(said(unused=unused)) is None
    assert in_pieces(said(unused=unused, free="46.20 GiB")).unused_gib == pytest.approx(gib)


def test_a_limit_of_torch_counts_and_not_what_the_device_has_left():
    assert in_pieces(said(free="130.00 GiB", unused="0.50 GiB", allowed="90.00 GiB allowed; ")) is None
    found = in_pieces(said(free="130.00 GiB", unused="41.00 GiB", allowed="100.00 GiB allowed; "))
    assert found == Pieces(unused_gib=41.0, whole_gib=pytest.approx(100.0))


def test_other_processes_of_a_shared_device_do_not_hide_it():
    others = "".join(f"Process {number} has 4.50 GiB memory in use. " for number in range(100_000, 100_006))
    words = said(allowed="100.00 GiB allowed; ", unused="60.00 GiB").replace("Including", f"{others}Including")
    status, reason = classify(RuntimeError(words))
    assert status == "oom" and in_pieces(reason).unused_gib == 60.0


@pytest.mark.parametrize("reason", ["", "can't allocate memory: you tried to allocate 100 bytes", "MemoryError"])
def test_other_words_say_nothing(reason):
    assert in_pieces(reason) is None
