"""A disk that takes nothing: every command that writes a file says so in one line, and leaves nothing behind."""

import errno
import os
from contextlib import redirect_stdout
from pathlib import Path

import pytest
import report_runs

from speechmeter.core.traces import SUFFIX, Trace, write_trace

PAGE = ("report", "run", "-o", "out/made.html")
PLOT = ("plot", "run", "--kind", "grid", "-o", "out/made.svg")
QUERY = ("query", "run", "SELECT subject FROM estimates", "-o", "out/made.csv")
SHAPES = ("shapes", "--generate", "5", "-o", "out/made.tsv")
SHAPES_PT = ("shapes", "--generate", "5", "-o", "out/made.pt")
SUBSET = ("data", "subset", "sounds", "--count", "1", "-o", "out/made.tsv")
TRACE = ("trace", "merge", f"one{SUFFIX}", f"two{SUFFIX}", "-o", "out/made.json.gz")
WRITING = [
    pytest.param(words, id=f"{words[0]} {words[-1].rpartition('.')[2]}")
    for words in (PAGE, PLOT, QUERY, SHAPES, SHAPES_PT, SUBSET, TRACE)
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    np, sf = pytest.importorskip("numpy"), pytest.importorskip("soundfile")
    monkeypatch.chdir(tmp_path)
    report_runs.write(tmp_path / "run", report_runs.grid("alpha"), report_runs.CPU)
    (tmp_path / "out").mkdir()
    (tmp_path / "sounds").mkdir()
    sf.write(tmp_path / "sounds/a.wav", np.zeros(1600), 16000)
    for name in ("one", "two"):
        write_trace(tmp_path / f"{name}{SUFFIX}", Trace(events=[{"ph": "X", "ts": 1, "dur": 1, "name": "a"}]))
    return tmp_path


def needs(words):
    """Skip what an extra is missing for."""
    for command, module in {"report": "vl_convert", "plot": "vl_convert", "query": "duckdb"}.items():
        if words[0] == command:
            pytest.importorskip(module)
    if words[-1].endswith(".pt"):
        pytest.importorskip("torch")


@pytest.fixture
def refusing(folder, monkeypatch):
    """`refusing(number)`: from now on the folder `out` refuses everything with this error, as a mounted disk does."""

    def make(number):
        below = str(folder / "out") + os.sep

        def guarded(kind, name):
            real = getattr(kind, name)

            def call(path, *args, **kwargs):
                changes = name != "open" or any(letter in (args[0] if args else "r") for letter in "wxa")
                if changes and str(Path(path).absolute()).startswith(below):
                    raise OSError(number, os.strerror(number), str(path))
                return real(path, *args, **kwargs)

            monkeypatch.setattr(kind, name, call)

        for name in ("open", "unlink", "replace", "mkdir"):
            guarded(Path, name)
        guarded(os, "mkdir")

    return make


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC])
@pytest.mark.parametrize("words", WRITING)
def test_a_disk_that_refuses_is_named_in_one_line(command, folder, refusing, words, number):
    needs(words)
    refusing(number)
    done = command(*words)
    assert done.code == 2, done
    (line,) = done.err.splitlines()
    made = words[-1]
    if words is not QUERY:  # DuckDB writes by itself; the file that it made cannot take its place
        assert line == (
            f"speechmeter: --output: {made} cannot be written: {os.strerror(number)}; "
            "make it writable and free some disk space, or choose another directory"
        )
    assert f"{made} cannot be written: {os.strerror(number)}" in line
    assert not (folder / made).exists()


@pytest.mark.parametrize("words", WRITING)
def test_what_was_there_stays_where_its_successor_cannot_be_written(command, folder, refusing, words):
    needs(words)
    made = folder / words[-1]
    made.write_text("mine")
    refusing(errno.ENOSPC)
    assert command(*words, "--force").code == 2
    assert made.read_text() == "mine"


@pytest.mark.parametrize("words", WRITING)
def test_a_path_below_a_file_is_refused_before_any_work(command, folder, words):
    needs(words)
    (folder / "file").write_text("mine")
    done = command(*words[:-1], words[-1].replace("out/", "file/"))
    assert (done.code, done.err) == (
        2,
        f"speechmeter: --output: {folder}/file is a file, not a directory; choose another name\n",
    )
    assert (folder / "file").read_text() == "mine"


@pytest.mark.parametrize("words", WRITING)
def test_a_folder_without_permission_is_refused_before_any_work(command, folder, monkeypatch, words):
    needs(words)
    real = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode, **k: Path(path).name != "out" and real(path, mode, **k)
    )  # root may write anywhere
    done = command(*words)
    assert done.code == 2 and f"{folder}/out is not writable; make it writable" in done.err
    assert list((folder / "out").iterdir()) == []


@pytest.mark.parametrize("words", WRITING)
def test_a_name_that_is_too_long_is_refused(command, words):
    needs(words)
    done = command(*words[:-1], words[-1].replace("made", "m" * 300))
    assert done.code == 2 and "File name too long" in done.err and "Traceback" not in done.err


def test_a_subset_in_no_format_is_refused_before_anything_is_read(command, monkeypatch):
    monkeypatch.setattr("speechmeter.workloads.selection.select", None)
    done = command("data", "subset", "sounds", "--count", "1", "-o", "made.txt")
    assert (done.code, done.err) == (
        2,
        "speechmeter: --output: the suffix of 'made.txt' is not supported; end it with .tsv or .jsonl or .npy\n",
    )


def test_an_export_of_a_query_that_the_disk_refuses_does_not_blame_the_query(command, monkeypatch):
    pytest.importorskip("duckdb")
    monkeypatch.setattr(os, "access", lambda *args, **kwargs: True)
    done = command("query", "run", "SELECT subject FROM estimates", "-o", "/proc/made.csv")
    assert done.code == 2
    assert "--output: /proc/made.csv cannot be written: No such file or directory; make it writable" in done.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("words", [("show", "run"), ("show", "run", "--format", "csv"), ("models",)])
def test_a_full_disk_behind_a_redirection_is_named_in_one_line(command, words):
    with Path("/dev/full").open("w") as full, redirect_stdout(full):
        done = command(*words)
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())  # what is still in its buffer goes there
    assert done.code == 2
    assert done.err == (
        "speechmeter: the output: No space left on device; "
        "check that it exists, that you may use it, and that the disk has room\n"
    )
