import os
import zipfile

import numpy as np
import pytest

from speechmeter.core.errors import InputError
from speechmeter.workloads.shapes.file import is_shape_file, read, write
from speechmeter.workloads.shapes.table import RAW, SUBSAMPLED, Shapes

ROWS = [[343, 71], [31, 2], [680, 0]]


def shapes(frames=SUBSAMPLED):
    return Shapes(rows=np.array(ROWS, dtype=np.int32), frames=frames)


@pytest.mark.parametrize("frames", [RAW, SUBSAMPLED])
@pytest.mark.parametrize("name", ["a.pt", "a.tsv"])
def test_what_is_written_reads_back_with_what_its_frames_are(tmp_path, name, frames):
    if name == "a.pt":
        pytest.importorskip("torch")
    write(tmp_path / "new" / name, shapes(frames))
    found = read(tmp_path / "new" / name)
    assert (found.rows.tolist(), found.rows.dtype, found.frames) == (ROWS, np.int32, frames)
    assert is_shape_file(tmp_path / "new" / name)


def test_the_originals_bare_tensor_is_read_and_written(tmp_path):
    torch = pytest.importorskip("torch")
    torch.save(torch.tensor(ROWS, dtype=torch.int32), tmp_path / "original.pt")
    found = read(tmp_path / "original.pt")
    assert (found.rows.tolist(), found.frames, found.origin) == (ROWS, SUBSAMPLED, "original.pt")
    write(tmp_path / "ours.pt", found, bare=True)
    again = torch.load(tmp_path / "ours.pt", weights_only=True)
    assert (again.dtype, again.tolist()) == (torch.int32, ROWS)


def test_a_bare_tensor_of_raw_frames_is_not_written(tmp_path):
    with pytest.raises(InputError, match="cannot store whether its frames are raw"):
        write(tmp_path / "a.pt", shapes(RAW), bare=True)
    with pytest.raises(InputError, match="is not supported"):
        write(tmp_path / "a.txt", shapes())
    assert not list(tmp_path.iterdir())


class Hostile:
    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_a_pickle_that_asks_for_code_is_refused_and_not_run(tmp_path):
    torch = pytest.importorskip("torch")
    torch.save({"shape_info": Hostile(tmp_path / "ran")}, tmp_path / "a.pt")
    with pytest.raises(InputError, match=r"it uses posix\.mkdir.*nothing in it was run"):
        read(tmp_path / "a.pt")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda torch: torch.zeros(3, 2), "holds torch.float32"),
        (lambda torch: torch.ones(3, 2, dtype=torch.bool), "holds torch.bool"),
        (lambda torch: torch.ones(3, 3, dtype=torch.int32), "of shape (3, 3)"),
        (lambda torch: torch.ones(6, dtype=torch.int32), "of shape (6,)"),
        (lambda torch: torch.ones(0, 2, dtype=torch.int32), "holds 0 rows"),
        (lambda torch: torch.ones(1, 1, dtype=torch.int32).expand(10**12, 2), "holds 1000000000000 rows"),
        (lambda torch: torch.tensor([[1, 1], [0, 1]]), "a row with 0 frames"),
        (lambda torch: torch.tensor([[1, 1], [5, -1]]), "or -1 tokens"),
        (lambda torch: torch.tensor([[1, 1], [5, 2**40]]), "1,099,511,627,776 frames or tokens"),
        (lambda torch: torch.ones(3, 2, dtype=torch.int32).to_sparse(), "not dense"),
        (lambda torch: {"shape_info": torch.ones(3, 2, dtype=torch.int32)}, "does not hold a table of shapes"),
        (lambda torch: {"shape_info": [[1, 1]], "frames": "raw"}, "does not hold a table of shapes"),
        (lambda torch: [1, 2], "does not hold a table of shapes"),
    ],
)
def test_tensors_that_are_no_shapes_are_refused(tmp_path, make, what):
    torch = pytest.importorskip("torch")
    torch.save(make(torch), tmp_path / "a.pt")
    with pytest.raises(InputError) as refused:
        read(tmp_path / "a.pt")
    assert what in str(refused.value)


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"not a tensor at all", bytes(2000)])
def test_broken_files_are_refused(tmp_path, data):
    pytest.importorskip("torch")
    (tmp_path / "a.pt").write_bytes(data)
    with pytest.raises(InputError, match=r"'a\.pt' is refused"):
        read(tmp_path / "a.pt")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "does not begin with"),
        ("/data/sound\na.flac\t16000\n", "does not begin with"),
        ("frames\ttokens\n", "holds 0 rows"),
        ("frames\ttokens\n5\n", "line 2 is not"),
        ("frames\ttokens\n5\t6\n5\t-6\n", "line 3 is not"),
        ("frames\ttokens\n5\t٣\n", "line 2 is not"),
        ("frames\ttokens\n9999999999\t1\n", "line 2 is not"),
        ("frames\ttokens\n1000001\t1\n", "1,000,001 frames"),
    ],
)
def test_tables_that_are_no_shapes_are_refused(tmp_path, text, what):
    (tmp_path / "a.tsv").write_text(text)
    with pytest.raises(InputError) as refused:
        read(tmp_path / "a.tsv")
    assert what in str(refused.value)


def test_a_file_that_changed_is_read_again(tmp_path):
    path = tmp_path / "a.tsv"
    for rows in ([[5, 1]], [[6, 1], [7, 2]]):
        write(path, Shapes(rows=np.array(rows, dtype=np.int32), frames=RAW))
        assert read(path).rows.tolist() == rows


def test_a_list_of_utterances_is_no_shape_file(tmp_path):
    (tmp_path / "set.tsv").write_text("/data/sound\na.flac\t16000\n")
    assert not is_shape_file(tmp_path / "set.tsv")
    assert not is_shape_file(tmp_path)
    with pytest.raises(InputError, match="there is no file"):
        read(tmp_path / "absent.pt")


def test_an_archive_that_unpacks_to_more_than_a_table_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "shapes.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("shapes/data.pkl", b"x")
        archive.writestr("shapes/data/0", bytes(3 << 20))
    monkeypatch.setattr("speechmeter.workloads.shapes.file._LARGEST_FILE", 2 << 20)
    monkeypatch.setattr("torch.load", lambda *a, **k: pytest.fail("it is unpacked"))
    assert path.stat().st_size < 1 << 20
    with pytest.raises(InputError, match="is larger than 2 MiB"):
        read(path)
