"""Operators as text files: everything, ranges alone, by module and by stack."""

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
from made_recordings import allocation, event, kernel, made, module  # noqa: E402
from torch.profiler import record_function  # noqa: E402

from speechmeter.meters.operators.use import write_texts  # noqa: E402
from speechmeter.meters.recording.profiler import recorded  # noqa: E402
from speechmeter.meters.recording.recording import Needs  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    net, x = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()), torch.randn(4, 8)

    def step():
        with record_function("mine"):
            net(x).sum().backward()

    folder = tmp_path_factory.mktemp("texts") / "made"
    write_texts(folder, recorded(step, [step], {"net": net}, Needs(modules=True), cuda=False))
    return folder


def rows(folder, name):
    """Cells of each line below the heading; the columns are at least two spaces apart."""
    return [[c for c in line.split("  ") if c] for line in (folder / name).read_text().splitlines()[1:]]


def test_the_full_table_holds_operators_and_no_range_of_ours(folder):
    text = (folder / "operators.txt").read_text()
    assert "aten::addmm" in text
    assert "aten::relu" in text
    assert "speechmeter." not in text


def test_the_filtered_table_holds_ranges_alone(folder):
    text = (folder / "ranges.txt").read_text()
    assert {"net", "net.0", "net.1", "mine"} <= {row[-1].strip() for row in rows(folder, "ranges.txt")}
    assert "aten::" not in text
    assert "speechmeter." not in text


def test_operators_stand_with_their_modules(folder):
    found = {
        tuple(cell.strip() for cell in row[-3:]): row[3].strip() for row in rows(folder, "operators-by-module.txt")
    }
    assert found["net.0", "forward", "aten::addmm"] == "1"
    assert found["net.0", "backward", "aten::mm"] == "1"
    assert found["net.1", "forward", "aten::relu"] == "1"


def test_shares_of_stacks_add_up(folder):
    found = rows(folder, "operators-by-stack.txt")
    assert sum(float(row[1].rstrip("%")) for row in found) == pytest.approx(100, abs=0.1 * len(found))
    assert any("net > net.0 > aten::linear > aten::addmm" in row[-1] for row in found)


def test_kernels_count_for_the_operator_that_started_them_and_for_the_ranges_around_it(tmp_path):
    recording = made(
        module("net", 0, 40),
        module("net.a", 5, 20),
        event("aten::mm", 6, 10, id=3),
        event("aten::relu", 22, 24, id=4),
        kernels=(kernel(50, 58, by=3), kernel(60, 61, by=4)),
    )
    write_texts(tmp_path, recording)
    ranges = {row[-1].strip(): [cell.strip() for cell in row[:-1]] for row in rows(tmp_path, "ranges.txt")}
    assert ranges == {"net": ["40.0", "9.0", "1"], "net.a": ["15.0", "8.0", "1"]}
    operators = {row[-1].strip(): [cell.strip() for cell in row[:-1]] for row in rows(tmp_path, "operators.txt")}
    assert operators == {
        "aten::mm": ["4.0", "66.7%", "8.0", "1", "4.0"],
        "aten::relu": ["2.0", "33.3%", "1.0", "1", "2.0"],
    }


def test_memory_of_the_cpu_and_of_a_gpu_have_columns_by_operator(tmp_path):
    recording = made(
        event("aten::linear", 0, 40),
        event("aten::mm", 5, 20),
        event("aten::relu", 50, 60),
        kernels=(kernel(50, 58, by=3),),
        memory=(
            allocation(2, 1024),
            allocation(10, 4096),
            allocation(12, 2048, on_gpu=True),
            allocation(55, -512),
            allocation(55, 100, thread=9),  # of a thread without operators
            allocation(70, 8192),  # between operators
        ),
    )
    write_texts(tmp_path, recording, memory=recording)
    head = (tmp_path / "operators.txt").read_text().splitlines()[0]
    assert [one.strip() for one in head.split("  ") if one][4:] == [
        "total CPU µs", "CPU KiB a call", "own CPU KiB", "CUDA KiB a call", "own CUDA KiB", "operator",
    ]  # fmt: skip
    cells = {row[-1].strip(): [cell.strip() for cell in row[4:-1]] for row in rows(tmp_path, "operators.txt")}
    assert cells == {
        "aten::linear": ["40.0", "5.0", "1.0", "2.0", "0.0"],
        "aten::mm": ["15.0", "4.0", "4.0", "2.0", "2.0"],
        "aten::relu": ["10.0", "-0.5", "-0.5", "0.0", "0.0"],
    }
