"""Each meter broken alone: the selftest fails, and names that one and no other."""

import pytest
from selftest_breakages import BREAKAGES, plant, states

pytestmark = pytest.mark.campaign
pytest.importorskip("torch", reason="without torch most meters are not checked")


@pytest.mark.parametrize("meter", BREAKAGES)
def test_a_broken_meter_alone_is_named(meter, cli, tmp_path):
    done = cli("selftest", PYTHONPATH=plant(tmp_path / "broken", [meter]))
    assert done.returncode == 1, done.stdout + done.stderr
    failed = {name for name, rows in states(done.stdout).items() for row in rows if row[-1] == "failed"}
    assert failed == {meter}
