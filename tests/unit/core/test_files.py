"""Files of strangers are read no further than to a limit; our own are written whole or not at all."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from speechmeter.core import files, memory_timeline, quality, traces, utterances
from speechmeter.core.errors import InputError, SensorError
from speechmeter.core.files import draft_folder, opened, read_bytes, read_text, whole_file
from speechmeter.meters.energy import power_log


def bomb(path, size=4 * 2**20, sign=b" "):
    path.write_bytes(gzip.compress(sign * size))
    return path


@pytest.fixture
def taken(monkeypatch):
    """How many bytes are unpacked."""
    counted = []
    real = gzip.GzipFile.read
    monkeypatch.setattr(gzip.GzipFile, "read", lambda self, size=-1: counted.append(size) or real(self, size))
    return counted


def test_plain_and_packed_files_are_read(tmp_path):
    (tmp_path / "a").write_bytes("\ufeffgrüß\n".encode())
    (tmp_path / "b").write_bytes(gzip.compress("grüß\n".encode()))
    assert read_text(tmp_path / "a", 100) == read_text(tmp_path / "b", 100) == "grüß\n"
    with opened(tmp_path / "b", None) as file:
        assert list(file) == ["grüß\n".encode()]


def test_a_file_with_more_than_the_limit_is_refused(tmp_path, taken):
    (tmp_path / "plain").write_bytes(b"x" * 101)
    for path in (tmp_path / "plain", bomb(tmp_path / "packed")):
        with pytest.raises(InputError, match="the file is larger than 100 bytes; split it"):
            read_bytes(path, 100)
    assert sum(taken) <= 2 * 2**16


def test_what_does_not_say_its_size_is_read_to_the_limit():
    end, start = os.pipe()
    os.write(start, b"x" * 60_000)
    try:
        with pytest.raises(InputError, match="larger than 100 bytes"):
            read_bytes(Path(f"/dev/fd/{end}"), 100)
    finally:
        os.close(start)
        os.close(end)


def test_a_file_that_unpacks_to_many_times_its_size_is_refused(tmp_path, monkeypatch, taken):
    monkeypatch.setattr(files, "_FROM_BYTES", 2**18)
    with pytest.raises(InputError, match="more than 200 times its size"):
        read_bytes(bomb(tmp_path / "x"), 2**30)
    assert sum(taken) < 2**20
    text = b"".join(b'{"id": %d, "text": "some words"}\n' % n for n in range(40_000))
    (tmp_path / "list").write_bytes(gzip.compress(text))
    assert read_bytes(tmp_path / "list", 2**30) == text


@pytest.mark.parametrize(
    "damage", [lambda raw: raw[:-20], lambda raw: raw[:30] + b"x" * 9 + raw[39:], lambda raw: raw[:3]]
)
def test_a_damaged_packed_file_is_refused(tmp_path, damage):
    (tmp_path / "x").write_bytes(damage(gzip.compress(bytes(range(256)) * 99)))
    with pytest.raises(InputError, match="the gzipped file is truncated or damaged"):
        read_bytes(tmp_path / "x", 2**20)


READERS = {
    "utterances": (utterances, "LARGEST_FILE", utterances.read_utterances, InputError),
    "trace": (traces, "LARGEST_FILE", traces.read_trace, InputError),
    "timeline": (memory_timeline, "LARGEST_FILE", memory_timeline.read_timeline, InputError),
    "power log": (power_log, "LARGEST_LOG", power_log.read_log, SensorError),
    "scores": (quality, "LARGEST_FILE", quality.read_scores, InputError),
}


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("packed", [False, True])
def test_every_reader_of_a_whole_file_has_a_limit(tmp_path, monkeypatch, kind, packed):
    module, limit, read, error = READERS[kind]
    monkeypatch.setattr(module, limit, 10_000)
    path = tmp_path / "x.json.gz"
    path.write_bytes(gzip.compress(b"[" * 10_001) if packed else b"[" * 10_001)
    with pytest.raises(error, match="larger than 10000 bytes"):
        read(path)


def line(name, **fields):
    whole = {"audio_filepath": name, "duration": 1.0, "time": 0.1, "text": "a", "pred_text": "a", **fields}
    return json.dumps(whole).encode() + b"\n"


def test_a_bomb_of_utterances_is_refused_before_it_is_held(tmp_path, taken):
    path = bomb(tmp_path / "x.jsonl.gz", 64 * 2**20, b"\n")
    with pytest.raises(InputError, match="more than 200 times its size"):
        utterances.read_utterances(path)
    assert sum(taken) < 20 * 2**20


def test_a_bad_byte_costs_one_utterance(tmp_path):
    (tmp_path / "x.jsonl").write_bytes(line("a") + line("b").replace(b"pred", b"pr\xffd") + line("c"))
    found = utterances.read_utterances(tmp_path / "x.jsonl")
    assert [one.name for one in found.utterances] == ["a", "c"]
    assert found.bad_lines == (f"{tmp_path / 'x.jsonl'}:2: not UTF-8",)


def test_many_bad_lines_are_counted_and_a_long_one_is_passed_over(tmp_path):
    raw = line("a") + b"[" * (3 * 2**20) + b"\n" + b"x\n" * 150 + line("b")
    (tmp_path / "x.jsonl").write_bytes(raw)
    found = utterances.read_utterances(tmp_path / "x.jsonl")
    assert [one.name for one in found.utterances] == ["a", "b"]
    assert len(found.bad_lines) == 101
    assert found.bad_lines[1].startswith(f"{tmp_path / 'x.jsonl'}:3: not JSON")
    assert found.bad_lines[-1].endswith("51 more lines that cannot be used")


def test_more_utterances_than_are_held_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(utterances, "MOST_UTTERANCES", 2)
    (tmp_path / "x.jsonl").write_bytes(b"".join(line(name) for name in "abc"))
    with pytest.raises(InputError, match="more than 2 utterances"):
        utterances.read_utterances(tmp_path / "x.jsonl")


def test_the_file_is_there_when_all_is_written(tmp_path):
    with whole_file(tmp_path / "x") as draft:
        draft.write_text("new")
        assert not (tmp_path / "x").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_what_was_there_stays_where_writing_fails(tmp_path):
    (tmp_path / "x").write_text("old")
    with pytest.raises(ValueError, match="no"), whole_file(tmp_path / "x") as draft:
        draft.write_text("half")
        raise ValueError("no")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("x", "old")]


def test_no_link_in_the_folder_is_written_through(tmp_path):
    (tmp_path / "outside").write_text("mine")
    for name in (".x.new", ".x.part", "x.part", ".x"):
        (tmp_path / name).symlink_to(tmp_path / "outside")
    with whole_file(tmp_path / "x") as draft:
        draft.write_text("new")
    assert (tmp_path / "outside").read_text() == "mine"


def test_the_longest_name_can_be_written(tmp_path):
    path = tmp_path / ("x" * 255)
    with whole_file(path) as draft:
        draft.write_text("new")
    assert path.read_text() == "new"


def test_the_file_has_the_rights_that_the_user_gives_to_new_ones(tmp_path):
    before = os.umask(0o027)
    try:
        with whole_file(tmp_path / "x"):
            pass
    finally:
        os.umask(before)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o640


def kill_within(kind, folder):
    """A process that is killed while its draft is there, as `kill -9` does; what it left."""
    code = f"""
import os
from pathlib import Path
from speechmeter.core.files import draft_folder, whole_file
with {"whole_file(Path('x'))" if kind == "file" else "draft_folder(Path('.'))"} as draft:
    if {kind != "file"}:
        (draft / "records.jsonl").write_text("half")
    os.kill(os.getpid(), 9)
"""
    ended = subprocess.run([sys.executable, "-c", code], cwd=folder, check=False)
    assert ended.returncode == -9
    return [path for path in folder.iterdir() if path.name.startswith(".speechmeter-draft-")]


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_the_draft_of_a_process_that_was_killed_is_removed_by_the_next(tmp_path, kind):
    (left,) = kill_within(kind, tmp_path)
    with whole_file(tmp_path / "y") as draft:
        assert not left.exists()
        draft.write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["y"]


def test_the_draft_of_a_process_that_lives_is_kept(tmp_path):
    with draft_folder(tmp_path) as one, whole_file(tmp_path / "x") as two, draft_folder(tmp_path) as three:
        assert one.is_dir()
        assert two.is_file()
        assert three.is_dir()
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_what_only_looks_like_a_draft_or_is_of_another_machine_is_kept(tmp_path):
    with whole_file(tmp_path / "x") as draft:
        host = draft.name.rpartition("-")[0]
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "mine").write_text("kept")
    (tmp_path / f"{host}-0").symlink_to(tmp_path / "outside")
    (tmp_path / ".speechmeter-draft-elsewhere-0").mkdir()
    (tmp_path / ".x.new").write_text("kept")
    with whole_file(tmp_path / "x"):
        pass
    assert (tmp_path / "outside" / "mine").read_text() == "kept"
    assert (tmp_path / ".speechmeter-draft-elsewhere-0").is_dir()
    assert (tmp_path / ".x.new").is_file()
