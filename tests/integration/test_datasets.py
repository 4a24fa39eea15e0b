"""A dataset with broken items, as a user runs it: the rest is measured, the record says what was left out."""

import json

import numpy as np
import pytest
from speech_sets import fairseq, nemo, pickled, waves, write_sounds

from speechmeter.analysis.derived import round_value
from speechmeter.core import metrics
from speechmeter.core.types import Record
from speechmeter.workloads.selection import Choice, select

PLAN = """
models: [{name: fake, load: "python:fakes.py:words"}]
data: {manifest: lists/set.tsv, count: 12}
batch: 4
sort: [none, descending]
meters: [latency, memory]
rounds: 1
repeats: 3
"""


def records(folder):
    return [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]


def values(record, metric):
    return next(m for m in record["measurements"] if m["metric"] == metric)


def test_a_dataset_with_broken_items_is_measured_without_them(cli, workshop):
    items = waves()
    base = workshop / "lists"
    write_sounds(base / "sound", items)
    fairseq(base, items)
    (base / "sound/utt03.flac").write_bytes((base / "sound/utt03.flac").read_bytes()[:900])
    (base / "sound/utt05.flac").unlink()
    (workshop / "plan.yaml").write_text(PLAN)
    done = cli("run", "plan.yaml", "--trust", "-o", "out")
    assert done.returncode == 0, done.stderr
    assert "2 of 12 items left out: utt03: cannot be decoded" in done.stdout
    plain, falling = records(workshop / "out")
    good = [wave for name, wave, _ in items[:12] if name not in ("utt03", "utt05")]
    for record, lengths in ((plain, [len(w) for w in good]), (falling, sorted(map(len, good), reverse=True))):
        assert record["status"] == "ok", record["reason"]
        groups = [lengths[start : start + 4] for start in range(0, 10, 4)]
        assert values(record, "items.v1")["values"] == [4, 4, 2]
        assert values(record, "audio_seconds.v1")["values"] == [sum(group) / 16_000 for group in groups]
        assert values(record, "padded_seconds.v1")["values"] == [max(g) * len(g) / 16_000 for g in groups]
        padded = sum(max(group) * len(group) for group in groups)
        waste = round_value(Record.from_json(record), metrics.PADDING_WASTE)
        assert waste[0] == pytest.approx(1 - sum(lengths) / padded)
        refused = values(record, "items_refused.v1")
        assert refused["values"] == [2]
        assert [name for name, _ in refused["notes"]["refused"]] == ["utt03", "utt05"]
    shown = cli("show", "out", "--metric", "padding_waste", "--format", "csv")
    assert shown.returncode == 0, shown.stderr
    texts = [path.read_text() for path in (workshop / "out" / "artifacts").rglob("text.tsv")]
    assert len(texts) == 2
    assert all(text.startswith("utt") for text in texts)


def test_nothing_is_written_for_data_of_which_nothing_can_be_used(cli, workshop):
    write = pickled(workshop / "set.npy", b"cposix\nsystem\n(S'touch ran'\ntR.")
    for manifest, what in ((write.name, "it uses posix.system"), ("absent.tsv", "does not exist")):
        done = cli("run", "--model", "python:fakes.py:nothing", "--data", manifest, "-o", "out")
        assert done.returncode == 2
        assert what in done.stderr
        assert done.stderr.count("\n") == 1
    assert not (workshop / "out").exists()
    assert not (workshop / "ran").exists()


def test_subsets_in_three_formats_hold_the_same_items(cli, workshop):
    items = waves()
    write_sounds(workshop / "sound", items)
    source = nemo(workshop, items)
    chosen = sorted(sorted(items, key=lambda item: len(item[1]))[:5])
    for suffix in ("tsv", "jsonl", "npy"):
        done = cli("data", "subset", str(source), "--count", "5", "--pick", "shortest", "-o", f"set.{suffix}")
        assert done.returncode == 0, done.stderr
        lengths = [len(wave) / 16_000 for _, wave, _ in chosen]
        told = f"5 items · min {min(lengths):.2f} s · max {max(lengths):.2f} s · mean {sum(lengths) / 5:.2f} s"
        assert told in done.stdout
        seen = []
        select(Choice(manifest=workshop / f"set.{suffix}"), keep=lambda place, data, seen=seen: seen.append(data))
        for (_, wave, _), data in zip(chosen, seen, strict=True):
            np.testing.assert_array_equal(data, wave)
    taken = cli("data", "subset", str(source), "--count", "5", "-o", "set.tsv")
    assert taken.returncode == 2
    assert "add --force" in taken.stderr


def test_a_refusal_names_the_line_of_the_plan(cli, workshop):
    (workshop / "plan.yaml").write_text('models: [{name: fake, load: "python:fakes.py:words"}]\ndata: gone.tsv\n')
    done = cli("run", "plan.yaml", "--trust", "-o", "out")
    assert done.returncode == 2
    assert "plan.yaml:2: 'gone.tsv' does not exist" in done.stderr
