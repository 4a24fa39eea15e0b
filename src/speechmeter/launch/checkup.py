"""What `speechmeter doctor` checks: findings with their state and, where something can be done, advice."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from statistics import median
from time import perf_counter_ns
from typing import Literal

from speechmeter.core import plugins
from speechmeter.core.device import Device
from speechmeter.core.machine import available_cores, cpu_model, kib_field, read_text
from speechmeter.launch.preflight import cuda_devices
from speechmeter.meters.energy.meter import SOURCES
from speechmeter.meters.energy.sensors import choose, domains_of
from speechmeter.meters.resident import HighWaterMark, probes

_GOVERNOR = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One fact about this machine."""

    what: str
    state: str
    level: Literal["good", "note", "bad"] = "good"
    advice: str = ""


def checkup() -> Iterator[Finding]:
    """All findings; takes about a second, most of it for the noise check."""
    cores = available_cores()
    yield Finding(what="python", state=platform.python_version())
    yield Finding(what="processor", state=f"{cpu_model()}, {len(cores)} of {os.cpu_count()} cores usable")
    memory = kib_field("/proc/meminfo", "MemTotal")
    free = kib_field("/proc/meminfo", "MemAvailable")
    if memory and free:
        yield Finding(what="memory", state=f"{memory / 2**30:.1f} GiB, {free / 2**30:.1f} GiB free")
    yield _torch()
    count = cuda_devices()
    yield Finding(what="CUDA", state=f"{count} device{'s' if count != 1 else ''}" if count else "no device")
    yield _governor()
    load = os.getloadavg()[0]
    busy = load >= 0.3 * len(cores)
    yield Finding(
        what="load",
        state=f"{load:.2f} over the last minute",
        level="note" if busy else "good",
        advice="other processes use the cores: close them" if busy else "",
    )
    yield _noise()
    yield _peak_memory()
    yield from _power(on_cuda=count > 0)
    yield from _plugins()


def _torch() -> Finding:
    if find_spec("torch") is None:
        return Finding(what="torch", state="not installed", level="note", advice="pip install 'speechmeter[torch]'")
    try:
        return Finding(what="torch", state=version("torch"))
    except PackageNotFoundError:
        return Finding(what="torch", state="installed, version unknown")


def _governor() -> Finding:
    governor = read_text(_GOVERNOR)
    if governor is None:
        return Finding(what="clock", state="governor unknown (a virtual machine hides it)", level="note")
    if governor == "performance":
        return Finding(what="clock", state="governor performance")
    advice = "`cpupower frequency-set -g performance` makes timing steadier"
    return Finding(what="clock", state=f"governor {governor}", level="note", advice=advice)


def _noise() -> Finding:
    """Repeat a small piece of work a few hundred times, and compare the slow repeats with the median."""
    times = []
    for _ in range(300):
        start = perf_counter_ns()
        sum(range(20_000))
        times.append(perf_counter_ns() - start)
    times.sort()
    ratio = times[int(0.95 * len(times))] / median(times)
    state = f"repeated work takes {ratio:.2f} × its median time at the 95th percentile"
    if ratio < 1.1:
        return Finding(what="noise", state=state)
    return Finding(what="noise", state=state, level="note", advice="use several rounds; close other programs")


def _peak_memory() -> Finding:
    found = probes()
    if not found:
        state = "unavailable: this system does not report the memory of a process"
        return Finding(what="peak memory", state=state, level="bad")
    if isinstance(found[0], HighWaterMark):
        return Finding(what="peak memory", state="exact: the kernel can reset the peak before each call")
    state = f"read from {found[0].source}: some readings may be lower bounds"
    return Finding(what="peak memory", state=state, level="note", advice="needs a writable /proc/self/clear_refs")


def _power(*, on_cuda: bool) -> Iterator[Finding]:
    """The sensors that the energy meter would read, and why a domain has none."""
    device = Device.parse("cuda:0" if on_cuda else "cpu")
    domains = domains_of(device)
    choice = choose(device, domains, SOURCES)
    for domain in domains:
        names = [sensor.name for sensor in choice.sensors if sensor.domain == domain]
        if choice.has(domain):
            yield Finding(what=f"energy, {domain}", state=", ".join(names))
        else:
            yield Finding(what=f"energy, {domain}", state=f"no sensor: {choice.reason(domain)}", level="note")
    choice.close()


def _plugins() -> Iterator[Finding]:
    for name in plugins.names(plugins.SUBJECTS):
        state = plugins.subject(name).installed()
        absent = {name: state.missing, **{f"{name}:{choice.source}": choice.missing for choice in state.choices}}
        for model, missing in absent.items():
            if missing:
                what, _, how = missing.partition(": ")
                yield Finding(what=f"model {model}", state=what, level="note", advice=how)
