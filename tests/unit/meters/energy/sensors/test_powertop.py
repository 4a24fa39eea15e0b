"""powertop, played by a script that writes a recorded report."""

import os

import pytest

from speechmeter.core.errors import SensorError
from speechmeter.meters.energy.sensors.powertop import PowertopSensor, find

WRITE = 'for a in "$@"; do case $a in --csv=*) cp {report} "${{a#--csv=}}";; esac; done'


@pytest.fixture
def battery(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    (tmp_path / "supplies/BAT0").mkdir(parents=True)
    (tmp_path / "supplies/BAT0/status").write_text("Discharging\n")
    return tmp_path / "supplies"


def test_a_reading_is_the_discharge_rate(battery, command, recorded):
    powertop = command("powertop", WRITE.format(report=recorded / "powertop-battery.csv"))
    (sensor,) = find(powertop, battery).sensors
    assert sensor.read().power_w == 12.5


def test_a_report_without_watts_is_an_error(command, recorded):
    powertop = command("powertop", WRITE.format(report=recorded / "powertop-mains.csv"))
    with pytest.raises(SensorError, match="no watts"):
        PowertopSensor(powertop).read()
    with pytest.raises(SensorError, match="wrote no report"):
        PowertopSensor(command("silent", "true")).read()


def test_it_is_used_only_where_it_has_something_to_say(battery, command, monkeypatch):
    powertop = command("powertop", "true")
    (battery / "BAT0/status").write_text("Charging\n")
    assert "no battery discharges" in find(powertop, battery).reason
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert find(powertop, battery).reason == "needs root"
    assert "not installed" in find("powertop-that-is-not-there", battery).reason
