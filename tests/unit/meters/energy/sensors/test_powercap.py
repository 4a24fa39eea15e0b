"""RAPL zones: what is counted, what is counted once, and the counter's end."""

from pathlib import Path

import pytest

from speechmeter.core.errors import SensorError
from speechmeter.meters.energy.sensors.powercap import find

RANGE_J = 262143.328850


def by_name(found):
    return {sensor.name: sensor for sensor in found.sensors}


def test_packages_count_once_and_dram_and_psys_apart(tree):
    found = by_name(find(tree("powercap")))
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
    sensor = by_name(find(root))["powercap package-0"]
    readings = []
    for microjoules in (262143300000, 500000, 900000, 100000):
        counter.write_text(f"{microjoules}\n")
        readings.append(sensor.read().energy_j)
    assert readings == pytest.approx([262143.3, RANGE_J + 0.5, RANGE_J + 0.9, 2 * RANGE_J + 0.1])


def test_a_fall_without_a_known_range_is_refused(tree):
    root = tree("powercap")
    (root / "intel-rapl:0/max_energy_range_uj").unlink()
    sensor = by_name(find(root))["powercap package-0"]
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
    found = find(root)
    assert found.sensors == ()
    assert "sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj" in found.reason


def test_a_missing_folder_and_an_empty_one_are_told_apart(tmp_path):
    assert "is missing" in find(tmp_path / "nowhere").reason
    assert "no intel-rapl zone" in find(tmp_path).reason
