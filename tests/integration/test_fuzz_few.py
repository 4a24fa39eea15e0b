"""A few of the damaged inputs that `make campaign` tries by the thousand, and a watch that does see."""

import os
import socket
import subprocess

import pytest
from fuzz_targets import TARGETS
from fuzz_watching import fuzz


@pytest.mark.parametrize("kind", TARGETS)
def test_damaged_inputs_are_read_or_refused(kind, tmp_path):
    tally = fuzz(TARGETS[kind][0], kind, range(25), tmp_path)
    assert tally.surprises == []
    assert tally.done == []
    assert tally.read + tally.refused == 25


BAD = {
    "writing": lambda folder: (folder.parent / "elsewhere").write_text("x"),
    "a program": lambda folder: subprocess.run(["true"], check=True),
    "a shell": lambda folder: os.system("true"),
    "a connection": lambda folder: socket.socket().connect_ex(("127.0.0.1", 9)),
    "a folder": lambda folder: (folder.parent / "new").mkdir(),
    "what was asked for": lambda folder: (folder / "pwned").mkdir(),
}


@pytest.mark.parametrize("what", BAD)
def test_the_watch_sees(what, tmp_path):
    tally = fuzz(lambda folder, draw: BAD[what](folder), what, range(1), tmp_path, warm=False)
    assert len(tally.done) >= 1


def test_the_watch_lets_reading_and_the_own_folder_be(tmp_path):
    def harmless(folder, draw):
        (folder / "own").write_text("x")
        (folder / "own").read_text()

    tally = fuzz(harmless, "harmless", range(3), tmp_path)
    assert (tally.done, tally.surprises, tally.read) == ([], [], 3)


def test_an_error_of_others_is_a_surprise(tmp_path):
    assert len(fuzz(lambda folder, draw: 1 / 0, "broken", range(2), tmp_path, warm=False).surprises) == 2
