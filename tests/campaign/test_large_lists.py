"""A million lines: gone through once, three of them chosen, memory as for a short list."""

import json
import subprocess
import sys

import pytest
from speech_sets import waves, write_sounds

pytestmark = pytest.mark.campaign

LINES = 1_000_000
MOST_MIB = 40

PROGRAM = """
import resource, sys
from pathlib import Path
import numpy, soundfile, soxr
from speechmeter.workloads.selection import Choice, select

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = select(Choice(manifest=Path(sys.argv[1]), count=3, how=sys.argv[2]))
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(grown, *(item.utterance.id for item in found.items))
"""


def write_tsv(path, items):
    with path.open("w") as file:
        file.write(f"{path.parent}\n")
        file.writelines(f"gone/{number}.flac\t999999\n" for number in range(LINES - len(items)))
        file.writelines(f"{name}.flac\t{len(wave)}\n" for name, wave, _ in items)


def write_jsonl(path, items):
    with path.open("w") as file:
        for number in range(LINES - len(items)):
            row = {"audio_filepath": f"gone/{number}.flac", "duration": 60.0, "text": "words that nobody said"}
            file.write(json.dumps(row) + "\n")
        for name, wave, text in items:
            row = {"audio_filepath": f"{name}.flac", "duration": len(wave) / 16_000, "text": text}
            file.write(json.dumps(row) + "\n")


def write_speechbrain(path, items):
    with path.open("w") as file:
        file.write("{")
        for number in range(LINES - len(items)):
            file.write(f'"gone{number}": {{"wav": "gone/{number}.flac", "length": 60.0}},\n')
        rows = [json.dumps({name: {"wav": f"{name}.flac", "length": len(w) / 16_000}})[1:-1] for name, w, _ in items]
        file.write(",\n".join(rows) + "}\n")


@pytest.mark.parametrize(
    ("name", "write"), [("set.tsv", write_tsv), ("set.jsonl", write_jsonl), ("set.json", write_speechbrain)]
)
def test_a_million_lines_take_no_more_memory_than_a_few(name, write, tmp_path):
    items = waves(3)
    write_sounds(tmp_path, items)
    write(tmp_path / name, items)
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / name), "shortest"],
        capture_output=True, text=True, timeout=1500, check=True,
    )  # fmt: skip
    grown_kib, *ids = answer.stdout.split()
    assert ids == [name for name, *_ in items]
    assert int(grown_kib) < MOST_MIB * 1024
