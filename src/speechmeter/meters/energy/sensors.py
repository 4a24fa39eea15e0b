"""A sensor and its readings, and which sensors a case uses: for each domain those of the first source that has one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Literal

from speechmeter.core.device import Device

Domain = Literal["gpu", "cpu", "system"]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One look at a sensor: cumulative joules or momentary watts, and when, by `time.monotonic()`."""

    at_s: float
    energy_j: float | None = None
    power_w: float | None = None


def _nothing_to_close() -> None:
    return None


@dataclass(frozen=True, kw_only=True)
class Sensor:
    """One number that can be read every `period_s`: joules since some moment in the past (`counter`), or watts.

    `ask` returns it, and raises SensorError when it cannot; it never returns a substitute. `whole` says that it is part
    of its domain's total; a side rail is not, and gets a row of its own. `at_end` says that the number is that of the
    end of the asking, not of its middle. `close` lets go of what it holds.
    """

    name: str
    domain: Domain
    ask: Callable[[], float]
    counter: bool
    period_s: float
    whole: bool = True
    at_end: bool = False
    close: Callable[[], None] = _nothing_to_close

    def read(self) -> Reading:
        """One reading, as of now."""
        before_s = monotonic()
        value = self.ask()
        after_s = monotonic()
        at_s = after_s if self.at_end else (before_s + after_s) / 2
        return Reading(at_s=at_s, energy_j=value) if self.counter else Reading(at_s=at_s, power_w=value)


@dataclass(frozen=True, kw_only=True)
class Found:
    """Sensors of one source; where there is none, the reason and what to do."""

    sensors: tuple[Sensor, ...] = ()
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Source:
    """A kind of sensor: which domains it may serve, and how to look for it given a device."""

    name: str
    domains: tuple[Domain, ...]
    find: Callable[[Device], Found]


@dataclass(kw_only=True)
class Choice:
    """Sensors to read, and why a domain has none."""

    sensors: list[Sensor] = field(default_factory=list)
    reasons: dict[Domain, list[str]] = field(default_factory=dict)

    def has(self, domain: Domain) -> bool:
        """Whether the domain's total can be measured."""
        return any(sensor.domain == domain and sensor.whole for sensor in self.sensors)

    def reason(self, domain: Domain) -> str:
        """Why the domain's total cannot be measured: one line over all sources."""
        return "; ".join(self.reasons.get(domain, ())) or f"no sensor measures the energy of the {domain}"

    def close(self) -> None:
        """Let go of every sensor."""
        for sensor in self.sensors:
            sensor.close()


def domains_of(device: Device) -> tuple[Domain, ...]:
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
                why = found.reason or f"no sensor for the {domain}"
                why = why if why.startswith(source.name) else f"{source.name}: {why}"
                choice.reasons.setdefault(domain, []).append(why)
    return choice
