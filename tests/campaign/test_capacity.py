"""Twenty searches each: the bracket of a capacity holds the true edge of queues with exact answers."""

import importlib.util
import sys
from pathlib import Path

import pytest
from simulated_queue import RandomQueue, true_edge

from speechmeter.analysis.live.capacity import capacities

pytestmark = pytest.mark.campaign
BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "capacity.py"


def loaded(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where a dataclass looks for its types
    spec.loader.exec_module(module)
    return module


def test_random_arrivals_and_work(tmp_path):
    search = loaded(Path(__file__).parents[1] / "unit" / "launch" / "test_capacity.py", "capacity_search")
    held = 0
    for seed in range(20):
        (found,) = capacities(search.searched(tmp_path / str(seed), RandomQueue(seed)), search.SLO)
        low, high = found.passes, found.fails
        print(seed, None if low is None else low.level, true_edge(), None if high is None else high.level)
        held += low is not None and high is not None and low.level <= true_edge() < high.level
    assert held >= 17


@pytest.mark.parametrize("name", ["closed", "paced"])
def test_fixed_work(tmp_path, name):
    capacity = loaded(BENCHMARK, "capacity_benchmark")
    queue = next(one for one in capacity.QUEUES if one.name == name)
    assert all(queue.holds(capacity.searched(queue, seed, tmp_path / str(seed))) for seed in range(20))
