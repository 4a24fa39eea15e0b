"""NVML played by a small module: which device, counter or power, and what is said without it."""

import os
import sys
from types import SimpleNamespace

import pytest

from speechmeter.core.device import Device
from speechmeter.core.errors import SensorError
from speechmeter.meters.energy.sensors.nvml import find
from speechmeter.meters.nvml_device import device_handle

UUIDS = ("GPU-aaaa1111", "GPU-bbbb2222", "GPU-cccc3333")


class NvmlError(Exception):
    pass


class Driver(SimpleNamespace):
    """Three GPUs; handles are their numbers."""

    NVMLError = NvmlError

    def __init__(self, *, counter=True, power=True):
        super().__init__(counter=counter, power=power, open=0)

    def nvmlInit(self):
        self.open += 1

    def nvmlShutdown(self):
        self.open -= 1

    def nvmlDeviceGetCount(self):
        return len(UUIDS)

    def nvmlDeviceGetUUID(self, handle):
        return UUIDS[handle]

    def nvmlDeviceGetHandleByIndex(self, index):
        if index >= len(UUIDS):
            raise NvmlError("Invalid Argument")
        return index

    def nvmlDeviceGetTotalEnergyConsumption(self, handle):
        if not self.counter:
            raise NvmlError("Not Supported")
        return 1_234_567 + handle

    def nvmlDeviceGetPowerUsage(self, handle):
        if not self.power:
            raise NvmlError("Not Supported")
        return 70_500


@pytest.fixture
def install(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def make(**kind):
        driver = Driver(**kind)
        monkeypatch.setitem(sys.modules, "pynvml", driver)
        return driver

    return make


def test_the_counter_is_read_in_joules(install):
    driver = install()
    (sensor,) = find(Device.parse("cuda")).sensors
    assert (sensor.name, sensor.domain, sensor.counter) == ("NVML cuda:0", "gpu", True)
    assert sensor.read().energy_j == pytest.approx(1234.567)
    sensor.close()
    assert driver.open == 0


def test_a_gpu_without_a_counter_is_read_by_its_power(install):
    install(counter=False)
    (sensor,) = find(Device.parse("cuda:1")).sensors
    assert (sensor.name, sensor.counter) == ("NVML cuda:1", False)
    assert sensor.read().power_w == pytest.approx(70.5)


def test_a_gpu_with_neither_says_so_and_gives_nvml_back(install):
    driver = install(counter=False, power=False)
    assert find(Device.parse("cuda")).reason == "NVML: Not Supported"
    assert driver.open == 0


def test_a_counter_that_breaks_is_a_sensor_error(install):
    driver = install()
    (sensor,) = find(Device.parse("cuda")).sensors
    driver.counter = False
    with pytest.raises(SensorError, match="NVML: Not Supported"):
        sensor.read()


@pytest.mark.parametrize(
    ("visible", "device", "handle"),
    [
        (None, "cuda", 0),
        (None, "cuda:2", 2),
        ("2,0", "cuda:0", 2),
        ("2,0", "cuda:1", 0),
        ("GPU-bbbb2222", "cuda:0", 1),
        ("GPU-cccc,0", "cuda:0", 2),
    ],
)
def test_the_device_is_the_one_that_the_process_sees(install, monkeypatch, visible, device, handle):
    driver = install()
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert device_handle(driver, Device.parse(device)) == handle


@pytest.mark.parametrize(
    ("visible", "device", "says"),
    [
        ("0", "cuda:1", "has no device 1"),
        ("", "cuda:0", "has no device 0"),
        ("GPU-zzzz", "cuda:0", "knows no device GPU-zzzz"),
        ("MIG-1234", "cuda:0", "MIG slice"),
        ("7", "cuda:0", "NVML: Invalid Argument"),
    ],
)
def test_a_device_that_is_not_there_is_named(install, monkeypatch, visible, device, says):
    driver = install()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert says in find(Device.parse(device)).reason
    assert driver.open == 0


def test_without_the_library_the_way_to_get_it_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert find(Device.parse("cuda")).reason == "nvidia-ml-py is not installed: pip install speechmeter[gpu]"
    assert "NVML does not know cpu" in find(Device.parse("cpu")).reason


def test_the_memory_meter_finds_its_process_on_the_same_device(install, monkeypatch):
    pytest.importorskip("torch", reason="the CUDA memory meter imports torch")
    from speechmeter.meters.cuda_memory import _used_bytes

    driver = install()
    processes = {2: [SimpleNamespace(pid=1, usedGpuMemory=5), SimpleNamespace(pid=os.getpid(), usedGpuMemory=7)]}
    driver.nvmlDeviceGetComputeRunningProcesses = processes.get
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-cccc3333")
    assert _used_bytes(Device.parse("cuda:0")) == [7]
    assert driver.open == 0


def test_the_real_library_on_a_machine_without_a_driver_gives_a_reason():
    pynvml = pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        assert find(Device.parse("cuda")).reason.startswith("NVML: ")
    else:
        pytest.skip("this machine has a driver")
