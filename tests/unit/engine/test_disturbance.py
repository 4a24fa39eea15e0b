"""What went on beside a measurement: other processes, clocks, the GPU."""

import subprocess
import sys
from types import MappingProxyType, SimpleNamespace

import pytest
from conftest import make_case

from speechmeter.core import metrics, process_tree
from speechmeter.core.device import Device
from speechmeter.core.machine import available_cores
from speechmeter.core.protocols import ORDINARY, Phase, Prepared
from speechmeter.core.types import Batch, Measurement, Stage
from speechmeter.engine import disturbance
from speechmeter.engine.disturbance import GpuState, Watch, disturbances
from speechmeter.engine.measure import measure

CORES = len(available_cores())


def judged(monkeypatch, *, governor=None, **after):
    monkeypatch.setattr(disturbance, "read_text", lambda path: governor)
    before = Watch(at_s=0, own_s=0, busy_s=100, throttled=0)
    later = Watch(**{"at_s": 10, "own_s": 10, "busy_s": 110, "throttled": 0, **after})
    found, warnings = disturbances(before, later)
    return {m.metric: m.values[0] for m in found}, warnings


def test_own_work_is_no_disturbance(monkeypatch):
    found, warnings = judged(monkeypatch)
    assert found == {"other_busy.v1": 0.0}
    assert warnings == []


def test_a_server_that_somebody_else_started_is_no_neighbour(monkeypatch):
    monkeypatch.setattr(process_tree, "cpu_seconds", lambda pids: 40.0 * (7 in set(pids)))
    alone = Watch.now()
    assert Watch.now((7,)).started_s - alone.started_s == pytest.approx(40.0, abs=1.0)


def test_what_the_model_started_is_no_neighbour_and_its_cores_are_told(monkeypatch):
    found, warnings = judged(monkeypatch, busy_s=100 + 10 + 10 * 0.5 * CORES, started_s=10 * 0.5 * CORES)
    assert found == {"other_busy.v1": 0.0, "cpu_started.v1": 0.5 * CORES}
    assert warnings == []


def test_the_work_of_a_child_is_told_while_it_runs_and_after_it_ended():
    before = Watch.now()
    program = "import sys; [sum(range(10_000)) for _ in iter(sys.stdout.flush, 0)]"
    with subprocess.Popen([sys.executable, "-ISc", program]) as child:
        while Watch.now().started_s - before.started_s < 0.2:
            pass
        child.kill()
        child.wait()
    assert Watch.now().started_s - before.started_s >= 0.2


def test_work_of_others_is_a_share_of_the_cores(monkeypatch):
    found, (warning,) = judged(monkeypatch, busy_s=100 + 10 + 10 * 0.5 * CORES)
    assert found == {"other_busy.v1": 0.5}
    assert "other processes were busy: they used 50% of the cores" in warning
    assert "close them" in warning


def test_a_window_too_short_for_the_kernels_clock_says_nothing(monkeypatch):
    found, warnings = judged(monkeypatch, at_s=0.2, busy_s=200)
    assert (found, warnings) == ({}, [])


def test_throttling_and_the_governor_are_named(monkeypatch):
    _, (warning,) = judged(monkeypatch, throttled=3)
    assert "throttled by heat" in warning
    _, (warning,) = judged(monkeypatch, governor="powersave")
    assert "governor is powersave" in warning
    assert judged(monkeypatch, governor="performance")[1] == []


def test_the_kernel_counts_this_process():
    before = Watch.now()
    while Watch.now().own_s - before.own_s < 0.1:
        sum(range(100_000))
    assert Watch.now().busy_s - before.busy_s > 0.05


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
