"""A record that does not fit is taken back whole: the file ends with a line end, and the run with a clear error."""

import json
import os
import subprocess
import sys

import pytest
from conftest import make_case, make_record

from speechmeter.core.errors import CannotGoOnError, RunDirError
from speechmeter.store import run_dir
from speechmeter.store.run_dir import RunDir, RunWriter

FILL = """
import resource, sys
from pathlib import Path
from conftest import make_case, make_record
from speechmeter.core.errors import CannotGoOnError
from speechmeter.store.run_dir import RunWriter

with RunWriter(Path(sys.argv[1])) as store:
    store.begin("models: [log-mel]\\n")
    store.append(make_record(make_case()))
    size = store.records_path.stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + size // 2, resource.RLIM_INFINITY))
    try:
        store.append(make_record(make_case(), round=1))
    except CannotGoOnError as error:
        print(error)
"""


def test_a_record_that_fits_in_part_is_taken_back(tmp_path):
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", FILL, str(tmp_path / "run")], capture_output=True, text=True, check=False, env=environ
    )
    assert "records.jsonl cannot be written: File too large" in done.stdout, done.stderr
    assert "`resume`" in done.stdout
    raw = (tmp_path / "run/records.jsonl").read_bytes()
    assert raw.endswith(b"\n")
    assert [json.loads(line)["round"] for line in raw.splitlines()] == [0]
    with RunWriter(tmp_path / "run") as store:
        store.begin("models: [log-mel]\n")
        store.append(make_record(make_case(), round=1))
    assert [record.round for record in RunDir(tmp_path / "run").records()] == [0, 1]


def test_a_failure_on_a_full_disk_is_no_result(tmp_path, monkeypatch):
    with RunWriter(tmp_path) as store:
        store.begin("")
        monkeypatch.setattr(run_dir, "_LEAST_ROOM", 2**80)
        store.append(make_record(make_case()))
        with pytest.raises(CannotGoOnError, match="no space left"):
            store.append(make_record(make_case(), round=1, status="error"))
    assert [record.status for record in RunDir(tmp_path).records()] == ["ok"]


def test_what_cannot_be_begun_leaves_nothing_behind(tmp_path, monkeypatch):
    def refuse(path, text):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(run_dir, "_replace_whole", refuse)
    (tmp_path / "mine").mkdir()
    for name in ("fresh", "mine"):
        with pytest.raises(RunDirError, match="No space left"), RunWriter(tmp_path / name) as store:
            store.begin("models: []\n")
    assert [(path.name, list(path.iterdir())) for path in tmp_path.iterdir()] == [("mine", [])]


def test_a_stored_plan_is_replaced_as_a_whole(tmp_path):
    for text in ("models: [a]\n", "models: [b]\n"):
        with RunWriter(tmp_path) as store:
            store.begin(text)
    assert (tmp_path / "plan.yaml").read_text() == "models: [b]\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["artifacts", "plan.yaml", "records.jsonl"]
