"""A machine whose power is known: time passes only when something in it sleeps or works."""

from __future__ import annotations

from contextlib import contextmanager

from speechmeter.core.errors import SensorError
from speechmeter.core.protocols import Prepared
from speechmeter.core.types import Batch, Stage
from speechmeter.meters.energy.meter import EnergyMeter
from speechmeter.meters.energy.sensors import Found, Reading, Source

STEP_S = 0.001
EPOCH_S = 1_760_000_000.0


class World:
    """`idle_w` always, and `extra_w` more while a call runs. Sensors look at `energy_j` in their own way."""

    def __init__(self, *, idle_w=100.0, extra_w=500.0, start_s=50.0):
        self.idle_w, self.extra_w = idle_w, extra_w
        self.now_s, self.energy_j, self.busy = start_s, 0.0, False
        self.each_step = []

    @property
    def power_w(self):
        return self.idle_w + (self.extra_w if self.busy else 0.0)

    def pass_time(self, seconds):
        for _ in range(round(seconds / STEP_S)):
            self.energy_j += self.power_w * STEP_S
            self.now_s += STEP_S
            for hook in self.each_step:
                hook()

    def work(self, seconds):
        self.busy = True
        self.pass_time(seconds)
        self.busy = False

    @contextmanager
    def watching(self, tracks):
        """Polls in simulated time what the meter polls in threads."""
        due_s = {id(track): self.now_s for track in tracks}

        def poll():
            for track in tracks:
                if self.now_s >= due_s[id(track)] - STEP_S / 2 and not track.failure:
                    due_s[id(track)] += track.period_s
                    track.poll()

        self.each_step.append(poll)
        yield
        self.each_step.remove(poll)


class Simulated:
    """A sensor of the world. A counter shows what it held at its last tick, `tick_s` apart from `phase_s` on."""

    whole = True

    def __init__(self, world, *, domain="cpu", counter=True, name="simulated", **options):
        self.world, self.domain, self.counter, self.name = world, domain, counter, name
        self.period_s = options.get("period_s", 0.02)
        self.tick_s, self.phase_s = options.get("tick_s", 0.1), options.get("phase_s", 0.0)
        self.fails_at_s, self.whole = options.get("fails_at_s"), options.get("whole", True)
        self.closed = 0
        self._shown_j, self._ticks = 0.0, 0
        world.each_step.append(self._tick)

    def _tick(self):
        ticks = int((self.world.now_s - self.phase_s) / self.tick_s + 1e-9)
        if ticks > self._ticks:
            self._ticks, self._shown_j = ticks, self.world.energy_j

    def read(self):
        if self.fails_at_s is not None and self.world.now_s >= self.fails_at_s:
            raise SensorError("the bus is gone")
        if self.counter:
            return Reading(at_s=self.world.now_s, energy_j=self._shown_j)
        return Reading(at_s=self.world.now_s, power_w=self.world.power_w)

    def close(self):
        self.closed += 1


class Works:
    """A subject whose call on a batch keeps the world busy for `batch.data` seconds, and its workload."""

    def __init__(self, world, *seconds):
        self.world, self.seconds = world, seconds
        self.calls = 0

    def prepare(self, case, device):
        return Prepared(stages=(Stage(name="model", fn=self._call),))

    def _call(self, batch):
        self.calls += 1
        self.world.work(batch.data)

    def batches(self, case):
        for seconds in self.seconds:
            yield Batch(data=seconds, items=1)


def source(*sensors, name="fake", reason=""):
    domains = tuple(dict.fromkeys(sensor.domain for sensor in sensors)) or ("gpu", "cpu", "system")
    return Source(name=name, domains=domains, find=lambda device: Found(sensors=sensors, reason=reason))


def energy_meter(world, *sources):
    return EnergyMeter(
        sources=sources,
        clock=lambda: world.now_s,
        epoch=lambda: world.now_s + EPOCH_S,
        sleep=world.pass_time,
        watching=world.watching,
    )
