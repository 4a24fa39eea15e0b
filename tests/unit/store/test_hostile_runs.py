"""Runs of strangers: nothing in them is run, and nothing outside of them is read or written because of them."""

import io
import json
import sys

import pytest
from conftest import make_case, make_record
from rich.console import Console

from speechmeter.api.querying import query
from speechmeter.core import metrics
from speechmeter.core.errors import InputError, RunDirError, SkippedLinesWarning, StoreError
from speechmeter.core.hosts import hosts_apart
from speechmeter.core.memory_timeline import FILE
from speechmeter.core.types import Measurement
from speechmeter.plan.study import study_from_file
from speechmeter.report.choose import tables
from speechmeter.report.methods.paragraph import methods, written
from speechmeter.report.page.build import build_page
from speechmeter.report.sources import read_sources
from speechmeter.report.terminal import draw
from speechmeter.report.text import formatted
from speechmeter.store.artifacts import artifact
from speechmeter.store.merge import merge
from speechmeter.store.run_dir import RunDir, RunWriter

SECRET = "a secret of this machine"


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret.yaml"
    path.write_text(SECRET + "\n")
    return path


def run_of(path, *records):
    with RunWriter(path) as store:
        store.begin("models: [log-mel]\n")
        for record in records or [make_record(make_case(), Measurement.of(metrics.LATENCY, [0.5]))]:
            store.append(record)
    return path


@pytest.mark.parametrize("name", ["plan.yaml", "records.jsonl", "environments.jsonl"])
@pytest.mark.parametrize("read", [lambda run, out: RunDir.existing(run), lambda run, out: merge([run], out)])
def test_a_run_whose_files_are_links_is_not_read(read, name, tmp_path, secret):
    run = run_of(tmp_path / "run")
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(secret)
    with pytest.raises(RunDirError, match="this is a symbolic link"):
        read(run, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "name", ["plan.yaml", "records.jsonl", "environments.jsonl", "artifacts", "artifacts/x", "artifacts/x/text.tsv"]
)
def test_a_run_is_not_resumed_through_a_link(name, tmp_path):
    run, outside = run_of(tmp_path / "run"), tmp_path / "outside"
    if name == "artifacts":
        (run / name).rmdir()
    (run / name).parent.mkdir(exist_ok=True)
    (run / name).unlink(missing_ok=True)
    outside.mkdir()
    target = outside if name in ("artifacts", "artifacts/x") else outside / "file"
    (run / name).symlink_to(target)
    with pytest.raises(RunDirError, match="this is a symbolic link"):
        run_of(run)
    assert list(outside.iterdir()) == []


def test_a_draft_that_a_stranger_left_is_not_written_through(tmp_path):
    run = run_of(tmp_path / "run")
    (run / "plan.yaml.new").symlink_to(tmp_path / "outside")
    run_of(run)
    assert not (tmp_path / "outside").exists()


def test_a_run_directory_may_itself_be_a_link(tmp_path):
    run_of(tmp_path / "large-disk")
    (tmp_path / "run").symlink_to(tmp_path / "large-disk")
    run_of(tmp_path / "run", make_record(make_case(), round=1))
    assert len(RunDir.existing(tmp_path / "run").records()) == 2


@pytest.mark.parametrize("link", ["artifacts", "artifacts/{id}", "artifacts/{id}/memory.json"])
def test_an_artifact_behind_a_link_is_absent(link, tmp_path):
    case, outside = make_case(), tmp_path / "outside"
    (outside / case.id).mkdir(parents=True)
    (outside / case.id / FILE).write_text("{}")
    (outside / FILE).write_text("{}")
    run = run_of(tmp_path / "run")
    own = run / link.format(id=case.id)
    if link == "artifacts":
        own.rmdir()
    own.parent.mkdir(exist_ok=True)
    own.symlink_to(outside if link == "artifacts" else outside / case.id if "memory" not in link else outside / FILE)
    assert (run / "artifacts" / case.id / FILE).is_file()  # by the link
    assert artifact(run / "artifacts", make_record(case), FILE) is None
    own.unlink()
    (run / "artifacts" / case.id).mkdir(parents=True, exist_ok=True)
    (run / "artifacts" / case.id / FILE).write_text("{}")
    assert artifact(run / "artifacts", make_record(case), FILE) is not None


opened: list[str] = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)


def test_paths_in_records_are_words_and_are_never_opened(tmp_path, secret):
    notes = {"file": str(secret), "notes": [str(secret)]}
    record = make_record(
        make_case(str(secret), meters=("latency", "trace")),
        Measurement.of(metrics.LATENCY, [0.5]),
        Measurement.of(metrics.TRACE_BYTES, [3.0], notes=notes),
        environment=f"../../{secret.name}",
        host=f"../../{secret.name}",
    )
    run = run_of(tmp_path / "run", record)
    opened.clear()
    read = hosts_apart(RunDir.existing(run).records())
    draw([*tables(read, None), *tables(read, "trace")], Console(file=io.StringIO()))
    build_page(read_sources([str(run)]), "0")
    query([run], "SELECT * FROM estimates")
    merge([run], tmp_path / "merged")
    assert str(run / "records.jsonl") in opened  # the hook sees
    assert not any(path.endswith(secret.name) for path in opened)
    assert SECRET not in "".join(path.read_text() for path in (tmp_path / "merged").rglob("*") if path.is_file())


def test_a_stored_plan_with_tags_builds_nothing(tmp_path):
    plan = run_of(tmp_path / "run") / "plan.yaml"
    plan.write_text(f"models: !!python/object/apply:os.mkdir ['{tmp_path / 'made'}']\n")
    with pytest.raises(InputError, match="tag"):
        study_from_file(plan, trust=True)
    assert not (tmp_path / "made").exists()


def test_words_of_a_record_do_not_steer_a_terminal(tmp_path):
    name = "\x1b]0;owned\x07\x1b[31mred\x9b2J\ud800\x08"
    run = run_of(tmp_path / "run")
    data = json.loads((run / "records.jsonl").read_text())
    data["case"]["subject"]["name"] = data["reason"] = data["warnings"] = name
    data["warnings"] = [name]
    (run / "records.jsonl").write_text(json.dumps(data) + "\n")
    shown = io.StringIO()
    draw(tables(RunDir(run).records(), None), Console(file=shown, force_terminal=False))
    text = shown.getvalue()
    assert "red" in text
    assert not any(sign in text for sign in "\x1b\x07\x9b\x08\ud800")


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_none_are_refused(constant, tmp_path):
    run = run_of(tmp_path / "run")
    (run / "records.jsonl").write_text((run / "records.jsonl").read_text().replace("[0.5]", f"[{constant}]"))
    with pytest.raises(StoreError, match=r"records\.jsonl:1"):
        RunDir(run).records()


def test_a_line_without_measure_is_refused_before_it_is_parsed(tmp_path, monkeypatch):
    run = run_of(tmp_path / "run")
    monkeypatch.setattr("speechmeter.store.lines.LARGEST_LINE", 2000)
    with (run / "records.jsonl").open("ab") as file:
        file.write(b"[" * 5000 + b"\n")
    with pytest.warns(SkippedLinesWarning, match="line 2: the line is longer than"):
        assert len(RunDir(run).records()) == 1


@pytest.mark.parametrize("device", ["mps:0", "CUDA", "cuda0", "cuda:01", "cuda:" + "9" * 5000, "", "a\nb", 7, None])
def test_a_run_with_an_odd_device_is_shown_and_reported(device, tmp_path):
    on_gpu = str(device).startswith("cuda")
    peak = metrics.MEMORY_CUDA_ALLOCATED if on_gpu else metrics.MEMORY_CPU_TOTAL
    figures = [Measurement.of(metrics.LATENCY, [0.5]), Measurement.of(peak, [2.0**20])]
    run = run_of(tmp_path / "run", make_record(make_case(device=device), *figures))
    (source,) = read_sources([str(run)])
    draw(tables(source.records, None), Console(file=io.StringIO()))
    (table,) = tables(source.records, "memory")
    assert "1.00 MiB" in formatted([table], "markdown")
    assert ("GPU" in written(methods(source.records, source.environments), "table")) is on_gpu
    build_page([source], "0")
