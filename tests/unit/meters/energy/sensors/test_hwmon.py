"""INA rails by their labels: which power, of what."""

import pytest

from speechmeter.core.errors import SensorError
from speechmeter.meters.energy.sensors.hwmon import domain_of, find


def rails(found):
    return {s.name: (s.domain, s.whole, pytest.approx(s.read().power_w)) for s in found.sensors}


def test_the_rails_of_an_agx_orin(tree):
    assert rails(find(tree("jetson-agx-orin"))) == {
        "hwmon ina3221 VDD_GPU_SOC": ("gpu", True, 19.072 * 0.248),
        "hwmon ina3221 VDD_CPU_CV": ("cpu", True, 19.080 * 0.080),
        "hwmon ina3221 VIN_SYS_5V0": ("system", False, 5.032 * 0.720),
        "hwmon ina3221 VDDQ_VDD2_1V8AO": ("system", False, 5.024 * 0.136),
    }


def test_the_rails_of_an_orin_nano(tree):
    assert rails(find(tree("jetson-orin-nano"))) == {
        "hwmon ina3221 VDD_IN": ("system", True, 4.968 * 1.104),
        "hwmon ina3221 VDD_CPU_GPU_CV": ("system", False, 4.968 * 0.184),
        "hwmon ina3221 VDD_SOC": ("system", False, 4.960 * 0.304),
    }


def test_a_chip_that_computes_power_is_believed(tree):
    assert rails(find(tree("ina238"))) == {"hwmon ina238 VIN": ("system", True, 29.9904)}


def test_a_rail_that_vanishes_is_an_error_and_a_dead_one_is_left_out(tree):
    root = tree("jetson-orin-nano")
    (root / "hwmon3/curr2_input").write_text("none\n")
    found = find(root)
    assert len(found.sensors) == 2
    (root / "hwmon3/in1_input").unlink()
    with pytest.raises(SensorError, match="in1_input"):
        next(s for s in found.sensors if s.name.endswith("VDD_IN")).read()


def test_without_a_chip_or_a_label_there_is_a_reason(tree, tmp_path):
    assert "no ina power monitor" in find(tmp_path / "nowhere").reason
    root = tree("ina238")
    (root / "hwmon4/label").unlink()
    assert "no labelled rail" in find(root).reason


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
