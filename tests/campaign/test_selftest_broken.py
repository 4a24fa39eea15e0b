"""Some meters broken: the selftest fails, and names those and no others."""

import pytest
from selftest_breakages import BREAKAGES, plant, states

pytestmark = pytest.mark.campaign
pytest.importorskip("torch", reason="without torch most meters are not checked")

HALVES = (("latency", "memory", "flops"), ("parameters", "operators", "peaks"))


def test_every_breakage_is_tried():
    assert {meter for half in HALVES for meter in half} == set(BREAKAGES)


@pytest.mark.parametrize("broken", HALVES, ids=",".join)
def test_broken_meters_are_named_and_sound_ones_are_not(broken, cli, tmp_path):
    done = cli("selftest", PYTHONPATH=plant(tmp_path / "broken", list(broken)))
    assert done.returncode == 1, done.stdout + done.stderr
    found = states(done.stdout)
    failed = [name for name, rows in found.items() for row in rows if row[-1] == "failed"]
    assert set(failed) == set(broken)
    assert f"{len(failed)} outside tolerance" in done.stderr
    if "memory" in broken:
        assert found["memory"][0][2].startswith(("31", "32"))  # MiB of 64
