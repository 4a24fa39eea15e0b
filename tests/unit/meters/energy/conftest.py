"""Recorded sensor files, laid out as the kernel lays them out."""

from pathlib import Path

import pytest

RECORDED = Path(__file__).parent / "recorded"


@pytest.fixture
def tree(tmp_path):
    """`tree("powercap")` makes the files of powercap.tree and returns their folder."""

    def make(name):
        for line in (RECORDED / f"{name}.tree").read_text().splitlines():
            path, _, text = line.partition(" ")
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text + "\n")
        return tmp_path

    return make


@pytest.fixture
def recorded():
    return RECORDED


@pytest.fixture
def command(tmp_path):
    """`command("name", "shell text")` makes a program that runs that text and returns its path."""

    def make(name, text):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return str(path)

    return make
