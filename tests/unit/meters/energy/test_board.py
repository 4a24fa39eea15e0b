"""The sensors of the machine: INA rails by their labels, RAPL zones, powertop and vcgencmd played by scripts.

The last tests ask the real sources of whatever machine this is: sensors or reasons, never an error.
"""

import os
from pathlib import Path

import pytest

from speechmeter.core.device import Device
from speechmeter.core.errors import SensorError
from speechmeter.meters.energy.board import (
    battery_watts,
    domain_of,
    find_hwmon,
    find_powercap,
    find_powertop,
    find_vcgencmd,
    rails_watts,
)
from speechmeter.meters.energy.meter import SOURCES
from speechmeter.meters.energy.sensors import choose

RANGE_J = 262143.328850
WRITE = 'for a in "$@"; do case $a in --csv=*) cp {report} "${{a#--csv=}}";; esac; done'


def rails(found):
    return {s.name: (s.domain, s.whole, pytest.approx(s.read().power_w)) for s in found.sensors}


def test_the_rails_of_an_agx_orin(tree):
    assert rails(find_hwmon(tree("jetson-agx-orin"))) == {
        "hwmon ina3221 VDD_GPU_SOC": ("gpu", True, 19.072 * 0.248),
        "hwmon ina3221 VDD_CPU_CV": ("cpu", True, 19.080 * 0.080),
        "hwmon ina3221 VIN_SYS_5V0": ("system", False, 5.032 * 0.720),
        "hwmon ina3221 VDDQ_VDD2_1V8AO": ("system", False, 5.024 * 0.136),
    }


def test_the_rails_of_an_orin_nano(tree):
    assert rails(find_hwmon(tree("jetson-orin-nano"))) == {
        "hwmon ina3221 VDD_IN": ("system", True, 4.968 * 1.104),
        "hwmon ina3221 VDD_CPU_GPU_CV": ("system", False, 4.968 * 0.184),
        "hwmon ina3221 VDD_SOC": ("system", False, 4.960 * 0.304),
    }


def test_a_chip_that_computes_power_is_believed(tree):
    assert rails(find_hwmon(tree("ina238"))) == {"hwmon ina238 VIN": ("system", True, 29.9904)}


def test_a_rail_that_vanishes_is_an_error_and_a_dead_one_is_left_out(tree):
    root = tree("jetson-orin-nano")
    (root / "hwmon3/curr2_input").write_text("none\n")
    found = find_hwmon(root)
    assert len(found.sensors) == 2
    (root / "hwmon3/in1_input").unlink()
    with pytest.raises(SensorError, match="in1_input"):
        next(s for s in found.sensors if s.name.endswith("VDD_IN")).read()


def test_without_a_chip_or_a_label_there_is_a_reason(tree, tmp_path):
    assert "no ina power monitor" in find_hwmon(tmp_path / "nowhere").reason
    root = tree("ina238")
    (root / "hwmon4/label").unlink()
    assert "no labelled rail" in find_hwmon(root).reason


@pytest.mark.parametrize(
    ("label", "domain"),
    [
        ("POM_5V_IN", ("system", True)),
        ("POM_5V_GPU", ("gpu", True)),
        ("VDD_SYS_CPU", ("cpu", True)),
        ("CPU", ("cpu", True)),
        ("VDD_CPU_GPU_CV", ("system", False)),
        ("SYS5V", ("system", False)),
    ],
)
def test_a_label_says_what_a_rail_feeds(label, domain):
    assert domain_of(label) == domain


def by_name(found):
    return {sensor.name: sensor for sensor in found.sensors}


def test_packages_count_once_and_dram_and_psys_apart(tree):
    found = by_name(find_powercap(tree("powercap")))
    assert {name: (s.domain, s.whole) for name, s in found.items()} == {
        "powercap package-0": ("cpu", True),
        "powercap package-0 dram": ("cpu", False),
        "powercap package-1": ("cpu", True),
        "powercap package-1 dram": ("cpu", False),
        "powercap psys": ("system", True),
    }
    assert found["powercap package-0"].read().energy_j == pytest.approx(91234.567890)


def test_a_counter_that_runs_over_goes_on_rising(tree):
    root = tree("powercap")
    counter = root / "intel-rapl:0/energy_uj"
    counter.write_text("262143000000\n")
    sensor = by_name(find_powercap(root))["powercap package-0"]
    readings = []
    for microjoules in (262143300000, 500000, 900000, 100000):
        counter.write_text(f"{microjoules}\n")
        readings.append(sensor.read().energy_j)
    assert readings == pytest.approx([262143.3, RANGE_J + 0.5, RANGE_J + 0.9, 2 * RANGE_J + 0.1])


def test_a_fall_without_a_known_range_is_refused(tree):
    root = tree("powercap")
    (root / "intel-rapl:0/max_energy_range_uj").unlink()
    sensor = by_name(find_powercap(root))["powercap package-0"]
    (root / "intel-rapl:0/energy_uj").write_text("1\n")
    with pytest.raises(SensorError, match="max_energy_range_uj"):
        sensor.read()


def test_a_refused_permission_says_how_to_get_it(tree, monkeypatch):
    real = Path.read_text

    def refuse(self, *args, **kwargs):
        if self.name == "energy_uj":
            raise PermissionError(13, "Permission denied")
        return real(self, *args, **kwargs)

    root = tree("powercap")
    monkeypatch.setattr(Path, "read_text", refuse)
    found = find_powercap(root)
    assert found.sensors == ()
    assert "sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj" in found.reason


def test_a_missing_folder_and_an_empty_one_are_told_apart(tmp_path):
    assert "is missing" in find_powercap(tmp_path / "nowhere").reason
    assert "no intel-rapl zone" in find_powercap(tmp_path).reason


@pytest.fixture
def battery(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    (tmp_path / "supplies/BAT0").mkdir(parents=True)
    (tmp_path / "supplies/BAT0/status").write_text("Discharging\n")
    return tmp_path / "supplies"


def test_a_reading_is_the_discharge_rate(battery, command, recorded):
    powertop = command("powertop", WRITE.format(report=recorded / "powertop-battery.csv"))
    (sensor,) = find_powertop(powertop, battery).sensors
    assert sensor.read().power_w == 12.5


def test_a_report_without_watts_is_an_error(command, recorded):
    powertop = command("powertop", WRITE.format(report=recorded / "powertop-mains.csv"))
    with pytest.raises(SensorError, match="no watts"):
        battery_watts(powertop)
    with pytest.raises(SensorError, match="wrote no report"):
        battery_watts(command("silent", "true"))


def test_it_is_used_only_where_it_has_something_to_say(battery, command, monkeypatch):
    powertop = command("powertop", "true")
    (battery / "BAT0/status").write_text("Charging\n")
    assert "no battery is discharging" in find_powertop(powertop, battery).reason
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert find_powertop(powertop, battery).reason == "needs root"
    assert "not installed" in find_powertop("powertop-that-is-not-there", battery).reason


def test_watts_are_summed_over_rails_with_both(recorded):
    truth = (
        0.0927 * 3.7 + 0.0781 * 3.31 + 0.1493 * 1.8 + 0.0156 * 1.105 + 0 + 0.1981 * 1.106 + 0.3112 * 0.801
        + 1.25 * 0.8 + 0 + 0.0002 * 3.315 + 0.0031 * 0.799 + 0.0172 * 5.09
    )  # fmt: skip
    assert rails_watts((recorded / "raspberry-pi-5.txt").read_text()) == pytest.approx(truth)


def test_the_command_is_asked_at_every_reading(recorded, command):
    (sensor,) = find_vcgencmd(command("vcgencmd", f"cat {recorded}/raspberry-pi-5.txt")).sensors
    assert (sensor.domain, sensor.counter) == ("system", False)
    assert sensor.read().power_w == pytest.approx(2.43, abs=0.05)


def test_a_board_without_readings_has_a_reason(command):
    found = find_vcgencmd(command("vcgencmd", """echo 'error=1 error_msg="Command not registered"'"""))
    assert found.sensors == ()
    assert "Command not registered" in found.reason
    assert "not installed" in find_vcgencmd("vcgencmd-that-is-not-there").reason


def test_no_output_of_vcgencmd_is_an_error():
    with pytest.raises(SensorError, match="no output"):
        rails_watts("")


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_every_source_answers(device):
    for source in SOURCES:
        found = source.find(Device.parse(device))
        assert found.sensors or found.reason, source.name
        for sensor in found.sensors:
            assert sensor.domain in ("gpu", "cpu", "system")
            sensor.close()


def test_a_domain_that_nothing_covers_has_a_reason():
    choice = choose(Device.parse("cpu"), ("cpu",), ())
    assert not choice.has("cpu")
    assert choice.reason("cpu") == "no sensor measures the energy of the cpu"
