"""Meters that work through torch, on a machine without it: each says so and how to install it."""

import pytest
from conftest import make_case

from speechmeter import meters
from speechmeter.core import plugins
from speechmeter.core.protocols import Meter


@pytest.mark.parametrize("name", ["flops", "operators", "modules", "split", "timeline", "trace", "peaks"])
def test_without_torch_the_reason_says_how_to_install_it(name, monkeypatch):
    meter = plugins.meter(name)
    assert meter.unavailable(make_case()) is None
    monkeypatch.setattr(meters, "find_spec", lambda package: None)
    assert meter.unavailable(make_case()) == "torch is not installed: pip install 'speechmeter[torch]'"


@pytest.mark.parametrize("name", plugins.names(plugins.METERS))
def test_every_meter_of_ours_derives_from_the_protocol(name):
    assert Meter in type(plugins.meter(name)).__mro__
