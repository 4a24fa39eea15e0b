"""Operators as text files: everything, ranges alone, by module and by stack."""

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
from torch.profiler import ProfilerActivity, profile, record_function  # noqa: E402

from speechmeter.meters.modules.events import events_of  # noqa: E402
from speechmeter.meters.modules.ranges import module_ranges  # noqa: E402
from speechmeter.meters.operator_texts import write_texts  # noqa: E402
from speechmeter.meters.traces.record import finished_trace  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    net, x = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()), torch.randn(4, 8)
    with module_ranges({"net": net}), profile(activities=[ProfilerActivity.CPU]) as finished, record_function("mine"):
        net(x).sum().backward()
    folder = tmp_path_factory.mktemp("texts") / "made"
    write_texts(folder, finished, finished_trace(finished, events_of(finished)))
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
        tuple(cell.strip() for cell in row[-3:]): row[2].strip() for row in rows(folder, "operators-by-module.txt")
    }
    assert found["net.0", "forward", "aten::addmm"] == "1"
    assert found["net.0", "backward", "aten::mm"] == "1"
    assert found["net.1", "forward", "aten::relu"] == "1"


def test_shares_of_stacks_add_up(folder):
    found = rows(folder, "operators-by-stack.txt")
    assert sum(float(row[1].rstrip("%")) for row in found) == pytest.approx(100, abs=0.1 * len(found))
    assert any("net > net.0 > aten::linear > aten::addmm" in row[-1] for row in found)
