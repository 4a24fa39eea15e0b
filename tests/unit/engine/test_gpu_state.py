"""The GPU beside the passes, NVML played by a small module: clock, temperature, and what holds the clock back."""

import sys
from types import MappingProxyType, SimpleNamespace

import pytest
from conftest import make_case

from speechmeter.core import metrics
from speechmeter.core.device import Device
from speechmeter.core.protocols import ORDINARY, Phase, Prepared
from speechmeter.core.types import Batch, Measurement, Stage
from speechmeter.engine.disturbance import GpuState
from speechmeter.engine.measure import measure

IDLE, APPLICATION_CLOCKS, POWER_CAP, SLOWDOWN, SOFTWARE_HEAT, HARDWARE_HEAT, BRAKE = 1, 2, 4, 8, 0x20, 0x40, 0x80


class NvmlError(Exception):
    pass


class Driver(SimpleNamespace):
    """Two GPUs, each look a row of (MHz, °C, reasons); after the last row they are off the bus."""

    NVMLError = NvmlError
    NVML_CLOCK_SM, NVML_TEMPERATURE_GPU = 1, 0

    def __init__(self, *rows):
        super().__init__(rows=list(rows), asked=[])

    def nvmlInit(self):
        pass

    def nvmlShutdown(self):
        pass

    def nvmlDeviceGetHandleByIndex(self, index):
        if index > 1:
            raise NvmlError("Invalid Argument")
        return f"gpu {index}"

    def nvmlDeviceGetClockInfo(self, handle, kind):
        assert kind == self.NVML_CLOCK_SM
        self.asked.append(handle)
        if not self.rows:
            raise NvmlError("GPU is lost")
        return self.rows[0][0]

    def nvmlDeviceGetTemperature(self, handle, kind):
        assert kind == self.NVML_TEMPERATURE_GPU
        return self.rows[0][1]

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle):
        return self.rows.pop(0)[2]


@pytest.fixture
def install(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def make(*rows):
        driver = Driver(*rows)
        monkeypatch.setitem(sys.modules, "pynvml", driver)
        return driver

    return make


def looked(*moments, device="cuda"):
    state = GpuState.of(Device.parse(device))
    for moment in moments:
        state.look(moment)
    return state


def test_every_look_is_kept_with_its_moment(install):
    driver = install((1980, 41, 0), (1755, 66, IDLE))
    state = looked("first call", "latency", device="cuda:1")
    clock, heat = state.measurements()
    assert (clock.metric, clock.unit, clock.values) == ("gpu_clock.v1", "MHz", (1980.0, 1755.0))
    assert (heat.metric, heat.unit, heat.values) == ("gpu_temperature.v1", "°C", (41.0, 66.0))
    assert clock.notes["after"] == heat.notes["after"] == ["first call", "latency"]
    assert clock.source == heat.source == "NVML"
    assert driver.asked == ["gpu 1", "gpu 1"]


@pytest.mark.parametrize(
    ("reasons", "causes"),
    [
        ((0, 0), []),
        ((IDLE, APPLICATION_CLOCKS), []),
        ((POWER_CAP, 0), ["power cap"]),
        ((0, SLOWDOWN), ["hardware slowdown"]),
        ((SOFTWARE_HEAT, 0), ["heat"]),
        ((HARDWARE_HEAT, 0), ["heat"]),
        ((SOFTWARE_HEAT, HARDWARE_HEAT), ["heat"]),
        ((IDLE | BRAKE, POWER_CAP), ["power cap", "power brake"]),
    ],
)
def test_what_held_the_clock_back_at_any_look_is_warned_of_once(install, reasons, causes):
    install(*((1980, 41, reason) for reason in reasons))
    state = looked("first call", "latency")
    assert state.measurements()[0].notes["held back by"] == causes
    assert [line.partition("(")[2].partition(")")[0] for line in state.warnings()] == causes
    assert all("let it cool, or set a fixed clock" in line for line in state.warnings())


def test_a_device_that_stops_answering_is_not_asked_again(install):
    driver = install((1980, 41, 0))
    state = looked("first call", "latency", "memory")
    assert len(driver.asked) == 2
    assert state.measurements()[0].values == (1980.0,)
    assert state.warnings() == []


def silent(state):
    return (state.measurements(), state.warnings()) == ([], [])


def test_without_the_library_it_is_silent(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert silent(looked("first call"))


def test_without_a_driver_it_is_silent(install):
    def refuse():
        raise NvmlError("Driver Not Loaded")

    install((1980, 41, SLOWDOWN)).nvmlInit = refuse
    assert silent(looked("first call"))


def test_a_device_that_nvml_does_not_know_is_silent(install):
    install((1980, 41, SLOWDOWN))
    assert silent(looked("first call", device="cuda:7"))


def test_a_case_on_the_processor_asks_no_gpu(install):
    driver = install((1980, 41, SLOWDOWN))
    assert silent(looked("first call", device="cpu"))
    assert driver.asked == []


class Reads:
    """A meter that gives one figure."""

    metrics = (metrics.LATENCY,)
    environ = MappingProxyType({})
    ways = ORDINARY
    phase = Phase.TIMING

    def __init__(self, name):
        self.name = name

    def unavailable(self, case):
        return None

    def measure(self, session):
        return [Measurement.of(metrics.LATENCY, [1.0])]


class Subject:
    def prepare(self, case, device):
        return Prepared(stages=(Stage(name="model", fn=lambda batch: None),))

    def batches(self, case):
        yield Batch(data=None, items=1)


def test_a_measured_case_has_a_look_after_the_first_call_and_after_each_pass(install):
    install((1980, 41, 0), (1800, 60, POWER_CAP), (1700, 70, 0))
    outcome = measure(make_case(device="cuda"), Subject(), Subject(), [Reads("latency"), Reads("peaks")])
    found = {m.metric: m for m in outcome.measurements}
    assert found["gpu_clock.v1"].values == (1980.0, 1800.0, 1700.0)
    assert found["gpu_clock.v1"].notes["after"] == ["first call", "latency", "peaks"]
    assert found["gpu_temperature.v1"].values == (41.0, 60.0, 70.0)
    assert [line for line in outcome.warnings if "power cap" in line]


def test_a_measured_case_without_nvml_says_nothing_of_a_gpu(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    outcome = measure(make_case(device="cuda"), Subject(), Subject(), [Reads("latency")])
    assert outcome.status == "ok"
    assert not [m.metric for m in outcome.measurements if m.metric.startswith("gpu_")]
    assert not [line for line in outcome.warnings if "GPU" in line]
