"""`speechmeter selftest` as a user runs it: sound meters pass. That broken ones are named is a campaign."""

import pytest
from selftest_breakages import states

pytest.importorskip("torch", reason="without torch most meters are not checked")

CHECKED = {"latency", "memory", "flops", "parameters", "operators", "peaks"}
WHERE_THERE_IS_HARDWARE = {"hardware-flops", "energy"}


def test_sound_meters_pass_with_truth_reading_and_error(cli):
    done = cli("selftest")
    assert done.returncode == 0, done.stdout + done.stderr
    found = states(done.stdout)
    assert set(found) == CHECKED | WHERE_THERE_IS_HARDWARE | {"live"}
    exact, *of_host, voice = found["live"]
    assert exact[-1] == voice[-1] == "passed"
    assert len(of_host) == 2
    assert all(row[-1].startswith(("passed", "warning: this machine was busy")) for row in of_host)
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
