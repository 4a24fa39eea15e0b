"""Following memory: tensors of known sizes, in modules of known names, at a peak that can be worked out."""

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from speechmeter.core.device import Device  # noqa: E402
from speechmeter.core.errors import InputError  # noqa: E402
from speechmeter.core.memory_timeline import read_timeline, write_timeline  # noqa: E402
from speechmeter.core.protocols import Phase  # noqa: E402
from speechmeter.meters.recording.profiler import recorded  # noqa: E402
from speechmeter.meters.recording.recording import Needs  # noqa: E402
from speechmeter.meters.timeline import TimelineMeter, by_module, thinned, timeline_of, timeline_rows  # noqa: E402  # noqa: E402


def record(steps, roots):
    """A trace of steps, as the meter asks for it."""
    return recorded(steps[0], steps, roots, Needs(modules=True, memory=True, traced=1), cuda=False).trace


FLOAT_BYTES = 4


class Keeps(torch.nn.Module):
    def __init__(self, elements):
        super().__init__()
        self.elements = elements

    def forward(self, _):
        return torch.zeros(self.elements)


class Net(torch.nn.Module):
    """Holds 1000 and 500 floats at once, then 200 alone; 5000 more live for a moment beside the 1000."""

    def __init__(self):
        super().__init__()
        self.large, self.moment, self.late = Keeps(1000), Keeps(5000), Keeps(200)

    def forward(self, x):
        large = self.large(x)
        self.moment(x)
        half = torch.ones(500)
        del large, half
        return self.late(x)


@pytest.fixture(scope="module")
def timeline():
    net = Net()
    return timeline_of(record([lambda: net(None)], {"net": net}).events, Device.parse("cpu"))


def test_the_peak_is_what_was_alive_together(timeline):
    assert timeline.growth_bytes == 6000 * FLOAT_BYTES
    assert max(timeline.allocated_bytes) == timeline.peak_bytes
    assert [level // FLOAT_BYTES for level in timeline.allocated_bytes] == [1000, 6000, 1000, 1500, 500, 0, 200, 0]
    assert list(timeline.time_s) == sorted(timeline.time_s)
    assert 0 <= timeline.peak_s <= timeline.duration_s


def test_the_peak_is_given_to_modules_and_operators(timeline):
    assert [(one.module, one.operator, one.bytes // FLOAT_BYTES) for one in timeline.held] == [
        ("net.moment", "aten::zeros", 5000),
        ("net.large", "aten::zeros", 1000),
    ]
    assert by_module(timeline.held) == {"net.moment": 20000, "net.large": 4000}


def test_the_record_tells_the_peak_and_the_modules(timeline):
    found = {m.scope: m.values[0] for m in timeline_rows(timeline)}
    assert found == {"total": 24000.0, "module:net.moment": 20000.0, "module:net.large": 4000.0}


def test_saved_for_backward_is_held_at_the_peak_by_the_forward_module():
    net = torch.nn.Sequential(torch.nn.Linear(10, 100, bias=False), torch.nn.Tanh(), torch.nn.Linear(100, 1))
    x = torch.randn(50, 10)
    found = timeline_of(record([lambda: net(x).sum().backward()], {"net": net}).events, Device.parse("cpu"))
    assert by_module(found.held)["net.1"] >= 50 * 100 * FLOAT_BYTES  # Tanh saves what it puts out


def test_a_step_without_tensors_has_no_timeline():
    assert timeline_of(record([lambda: None], {}).events, Device.parse("cpu")) is None


def test_allocations_of_a_gpu_count_from_what_was_there_before():
    def change(at, size, address, total, kind=1):
        args = {"Bytes": size, "Addr": address, "Total Allocated": total, "Total Reserved": 2 * total}
        args |= {"Device Type": kind, "Device Id": 0}
        return {"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": at, "args": args}

    events = [change(1, 100, 1, 1100), change(2, 50, 2, 1150), change(3, -100, 1, 1050), change(2, 999, 9, 999, kind=0)]
    found = timeline_of(events, Device.parse("cuda"))
    assert (found.start_bytes, found.peak_bytes, found.growth_bytes) == (1000, 1150, 150)
    assert list(found.allocated_bytes) == [1100, 1150, 1050]
    assert list(found.reserved_bytes) == [2200, 2300, 2100]
    assert timeline_of(events, Device.parse("cuda:1")) is None


def test_thinning_keeps_the_highest_and_the_lowest():
    levels = [0] * 10_000
    levels[1234], levels[7777] = 99, -5
    kept = thinned(levels, 400)
    assert len(kept) <= 400
    assert {1234, 7777, 0, 9999} <= set(kept)


def test_what_is_written_can_be_read_back(timeline, tmp_path):
    write_timeline(tmp_path / "memory.json", timeline)
    assert read_timeline(tmp_path / "memory.json").to_json() == timeline.to_json()
    for text in ("", "[]", '{"format": 9}', '{"format": 1}'):
        (tmp_path / "memory.json").write_text(text)
        with pytest.raises(InputError, match=r"memory\.json"):
            read_timeline(tmp_path / "memory.json")


def test_it_runs_where_nothing_is_timed():
    assert TimelineMeter().phase is Phase.PROFILE
