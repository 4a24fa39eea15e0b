"""Shapes as a user makes, looks at and measures them."""

import json

import pytest

from speechmeter.analysis.derived import round_value
from speechmeter.core import metrics
from speechmeter.core.types import Record

PLAN = """
models: [{name: fake, load: "python:fakes.py:nothing"}]
shapes: {file: drawn.tsv, first: 2, steps: 3}
max_frames: [null, 2000]
meters: [latency]
rounds: 1
repeats: 3
"""


def test_drawn_shapes_are_written_measured_and_their_waste_shown(cli, workshop):
    drawn = cli("shapes", "--generate", "300", "--seed", "5", "-o", "drawn.tsv")
    assert drawn.returncode == 0, drawn.stderr
    header, *lines = (workshop / "drawn.tsv").read_text().splitlines()
    rows = [tuple(map(int, line.split("\t"))) for line in lines]
    assert (header, len(rows)) == ("frames\ttokens", 300)

    (workshop / "plan.yaml").write_text(PLAN)
    done = cli("run", "plan.yaml", "--trust", "-o", "out")
    assert done.returncode == 0, done.stderr
    fixed, by_frames = (
        Record.from_json(json.loads(line)) for line in (workshop / "out/records.jsonl").read_text().splitlines()
    )
    groups = [rows[start : start + 30] for start in (60, 90, 120)]
    true = [sum(t * (u + 1) for t, u in group) for group in groups]
    padded = [30 * max(t for t, _ in group) * (max(u for _, u in group) + 1) for group in groups]
    assert list(fixed.find(metrics.CELLS.id).values) == true
    assert list(fixed.find(metrics.CELLS_PADDED.id).values) == padded
    assert round_value(fixed, metrics.CELL_WASTE)[0] == pytest.approx(1 - sum(true) / sum(padded))
    assert len(by_frames.find(metrics.CELLS.id).values) == 3
    assert round_value(by_frames, metrics.CELL_WASTE)[0] < round_value(fixed, metrics.CELL_WASTE)[0]
    assert by_frames.find(metrics.AUDIO_SECONDS.id) is None

    shown = cli("show", "out", "--metric", "cell_waste")
    assert shown.returncode == 0, shown.stderr
    assert "300 rows of drawn.tsv, subsampled frames; batches: 30 rows each, file order" in shown.stdout


def test_a_list_becomes_a_shape_file_and_what_is_left_out_is_said(cli, workshop):
    lines = [{"audio_filepath": f"{n}.wav", "duration": n / 2, "text": "word " * n} for n in range(61)]
    (workshop / "set.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    done = cli("shapes", "set.jsonl", "--tokens", "words", "--frames", "raw", "-o", "shapes.tsv", "--batch", "20")
    assert done.returncode == 0, done.stderr
    assert "1 of 61 items left out: 0: is too short: 0 frames leave none" in done.stderr
    text = (workshop / "shapes.tsv").read_text()
    assert text == "raw_frames\ttokens\n" + "".join(f"{50 * n}\t{n}\n" for n in range(1, 61))
    padded = [20 * 50 * n * (n + 1) for n in (20, 40, 60)]
    assert f"{max(padded):,} at 2" in done.stdout
    assert f"{sum(padded) / 3:,.0f}" in done.stdout

    looked = cli("shapes", "shapes.tsv")
    assert "60 rows, raw frames" in looked.stdout
    assert "at most 30,000 frames each, descending, columns" in looked.stdout
    assert "60 rows, subsampled frames" in cli("shapes", "shapes.tsv", "--frames", "subsampled").stdout

    taken = cli("shapes", "set.jsonl", "--tokens", "words", "-o", "shapes.tsv")
    assert (taken.returncode, taken.stdout) == (2, "")
    assert "shapes.tsv already exists; add --force" in taken.stderr
    assert (workshop / "shapes.tsv").read_text() == text


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ((), "one source is needed; give a list, a folder or a shape file, or --generate"),
        (("fakes.py", "--generate", "3"), "one source is needed"),
        (("--generate", "3", "--frames", "mel"), "--frames: unknown kind of frames 'mel'; choose from: raw"),
        (("--generate", "3", "-o", "a.txt"), "use the suffix .pt or .tsv"),
        (("absent.pt",), "there is no file 'absent.pt'"),
        (("absent.jsonl",), "does not exist"),
    ],
)
def test_bad_input_exits_2_and_writes_nothing(cli, workshop, words, what):
    before = sorted(workshop.iterdir())
    done = cli("shapes", *words)
    assert done.returncode == 2
    assert what in done.stderr
    assert sorted(workshop.iterdir()) == before
