"""The real sources on whatever machine this is: sensors or reasons, never an error."""

import pytest

from speechmeter.core.device import Device
from speechmeter.meters.energy.sensors.sources import SOURCES, choose


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
    assert choice.reason("cpu") == "no sensor covers the cpu"
