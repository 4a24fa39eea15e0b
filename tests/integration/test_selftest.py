"""`speechmeter selftest` as a user runs it: sound meters pass, broken ones are named.

Each test runs every meter, in about twenty processes, and takes half a minute. Each meter broken alone is a campaign.
"""

import pytest
from selftest_breakages import plant, states

from speechmeter.api import selftest

pytest.importorskip("torch", reason="without torch most meters are not checked")

CHECKED = {"latency", "memory", "flops", "parameters", "operators", "peaks"}
WHERE_THERE_IS_HARDWARE = {"hardware-flops", "energy"}


def test_sound_meters_pass_with_truth_reading_and_error(cli, monkeypatch):
    monkeypatch.setattr(selftest, "_BY_TURNS", 3)  # each takes three seconds of matrix products
    done = cli("selftest")
    assert done.returncode == 0, done.stdout + done.stderr
    found = states(done.stdout)
    assert set(found) == CHECKED | WHERE_THERE_IS_HARDWARE
    for meter in CHECKED:
        for what, truth, reading, error, allowed, state in found[meter]:
            assert all((what, truth, reading, error, allowed)), meter
            assert state == "passed", meter
    for meter in WHERE_THERE_IS_HARDWARE:
        for *_, reading, error, _, state in found[meter]:
            assert state == "passed" or (state.startswith("not checked: ") and not reading + error), meter
    assert float(found["latency"][0][1].removesuffix(" ms")) >= 20.0
    assert found["memory"][0][1] == "64.0 MiB"
    lstm, depthwise, tied = 4 * 128 * (80 + 128 + 2), 128 * 5 + 128, 128 * 128 + 2 * 128
    assert found["parameters"][0][1:4] == [f"{lstm + depthwise + tied:,}"] * 2 + ["0"]


@pytest.mark.campaign
def test_broken_meters_are_named_and_sound_ones_are_not(cli, tmp_path):
    broken = ["latency", "memory", "flops"]
    done = cli("selftest", PYTHONPATH=plant(tmp_path / "broken", broken))
    assert done.returncode == 1, done.stdout + done.stderr
    found = states(done.stdout)
    for meter in broken:
        assert found[meter][0][-1] == "failed", meter  # a second row is that of a GPU
    for meter in ("parameters", "operators"):
        assert {row[-1] for row in found[meter]} == {"passed"}, meter
    assert found["memory"][0][2].startswith(("31", "32"))  # MiB of 64
    failed = sum(row[-1] == "failed" for rows in found.values() for row in rows)
    assert f"{failed} outside tolerance" in done.stderr
