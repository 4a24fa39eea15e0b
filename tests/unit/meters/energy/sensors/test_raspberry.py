"""The Raspberry Pi's rails: volts and amperes by name."""

import pytest

from speechmeter.core.errors import SensorError
from speechmeter.meters.energy.sensors.raspberry import find, rails_watts


def test_watts_are_summed_over_rails_with_both(recorded):
    truth = (
        0.0927 * 3.7 + 0.0781 * 3.31 + 0.1493 * 1.8 + 0.0156 * 1.105 + 0 + 0.1981 * 1.106 + 0.3112 * 0.801
        + 1.25 * 0.8 + 0 + 0.0002 * 3.315 + 0.0031 * 0.799 + 0.0172 * 5.09
    )  # fmt: skip
    assert rails_watts((recorded / "raspberry-pi-5.txt").read_text()) == pytest.approx(truth)


def test_the_command_is_asked_at_every_reading(recorded, command):
    (sensor,) = find(command("vcgencmd", f"cat {recorded}/raspberry-pi-5.txt")).sensors
    assert (sensor.domain, sensor.counter) == ("system", False)
    assert sensor.read().power_w == pytest.approx(2.43, abs=0.05)


def test_a_board_without_readings_is_told(command):
    found = find(command("vcgencmd", """echo 'error=1 error_msg="Command not registered"'"""))
    assert found.sensors == ()
    assert "Command not registered" in found.reason
    assert "not installed" in find("vcgencmd-that-is-not-there").reason


def test_no_rail_is_an_error():
    with pytest.raises(SensorError, match="no output"):
        rails_watts("")
