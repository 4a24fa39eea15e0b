"""Encodings against the tables of the kernel (tools/perf/pmu-events/arch/x86), written down once more here."""

import pytest

from speechmeter.core.errors import SensorError
from speechmeter.meters.hardware.events import events_of

INTEL_LANES = {
    0x01: 1,  # SCALAR_DOUBLE
    0x02: 1,  # SCALAR_SINGLE
    0x04: 128 // 64,
    0x08: 128 // 32,
    0x10: 256 // 64,
    0x20: 256 // 32,
    0x40: 512 // 64,
    0x80: 512 // 32,
}


@pytest.mark.parametrize(("umask", "lanes"), INTEL_LANES.items())
def test_every_width_and_precision_of_intel_is_in_one_event_with_its_lanes(umask, lanes):
    found = [event for event in events_of({"vendor_id": "GenuineIntel"}) if event.umask & umask]
    assert [event.lanes for event in found] == [lanes]
    assert found[0].config & 0xFF == 0xC7
    assert found[0].config >> 8 == found[0].umask


@pytest.mark.parametrize(("family", "config"), [("23", 0xFF03), ("25", 0x0F03), ("26", 0x0F03)])
def test_zen_counts_lanes_itself(family, config):
    (event,) = events_of({"vendor_id": "AuthenticAMD", "cpu family": family})
    assert (event.config, event.lanes) == (config, 1)


@pytest.mark.parametrize(
    "cpuinfo",
    [{}, {"vendor_id": "AuthenticAMD", "cpu family": "21"}, {"vendor_id": "HygonGenuine", "cpu family": "24"}],
)
def test_other_processors_are_refused_with_what_is_known(cpuinfo):
    with pytest.raises(SensorError, match=r"no floating-point event is known.*Intel since Broadwell and AMD Zen"):
        events_of(cpuinfo)
