"""Which sensors a case uses: for each domain the first source that has one, and the reasons of those that have none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from speechmeter.core.device import Device
from speechmeter.core.types import Case
from speechmeter.meters.energy.sensors import hwmon, nvml, powercap, powertop, raspberry, zeus
from speechmeter.meters.energy.sensors.base import Domain, Found, Sensor


@dataclass(frozen=True, kw_only=True)
class Source:
    """A kind of sensor: which domains it may serve, and how to look for it given a device."""

    name: str
    domains: tuple[Domain, ...]
    find: Callable[[Device], Found]


SOURCES: tuple[Source, ...] = (
    Source(name="NVML", domains=("gpu",), find=nvml.find),
    Source(name="powercap", domains=("cpu", "system"), find=lambda device: powercap.find()),
    Source(name="hwmon", domains=("gpu", "cpu", "system"), find=lambda device: hwmon.find()),
    Source(name="vcgencmd", domains=("system",), find=lambda device: raspberry.find()),
    Source(name="zeus", domains=("gpu", "cpu"), find=zeus.find),
    Source(name="powertop", domains=("system",), find=lambda device: powertop.find()),
)
"""In order of trust: counters of the part itself, then power of rails, then other programs' figures."""


@dataclass(kw_only=True)
class Choice:
    """Sensors to read, and why a domain has none."""

    sensors: list[Sensor] = field(default_factory=list)
    reasons: dict[Domain, list[str]] = field(default_factory=dict)

    def has(self, domain: Domain) -> bool:
        """Whether the domain's total can be had."""
        return any(sensor.domain == domain and sensor.whole for sensor in self.sensors)

    def reason(self, domain: Domain) -> str:
        """Why the domain's total cannot be had: one line over all sources."""
        return "; ".join(self.reasons.get(domain, ())) or f"no sensor covers the {domain}"

    def close(self) -> None:
        """Let go of every sensor."""
        for sensor in self.sensors:
            sensor.close()


def domains_of(case: Case) -> tuple[Domain, ...]:
    """What a case can draw power from."""
    return domains_with(case.device)


def domains_with(device: Device) -> tuple[Domain, ...]:
    """What work on a device draws power from: a GPU only when it runs on one."""
    return ("cpu", "system") if device.is_cpu else ("gpu", "cpu", "system")


def choose(device: Device, domains: Sequence[Domain], sources: Sequence[Source]) -> Choice:
    """For each domain the sensors of the first source that covers it. Side rails are kept from every source."""
    choice = Choice()
    for source in sources:
        open_domains = [domain for domain in source.domains if domain in domains and not choice.has(domain)]
        if not open_domains:
            continue
        found = source.find(device)
        for sensor in found.sensors:
            if sensor.domain in open_domains:
                choice.sensors.append(sensor)
            else:
                sensor.close()
        for domain in open_domains:
            if not choice.has(domain):
                choice.reasons.setdefault(domain, []).append(_why(source, found, domain))
    return choice


def _why(source: Source, found: Found, domain: Domain) -> str:
    why = found.reason or f"no sensor for the {domain}"
    return why if why.startswith(source.name) else f"{source.name}: {why}"
