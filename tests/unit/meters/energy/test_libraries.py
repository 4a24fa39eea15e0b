"""Sensors that libraries read. NVML and zeus 0.16 are played by modules; the real ones where present."""

import os
import sys
from types import SimpleNamespace

import pytest

from speechmeter.core.device import Device
from speechmeter.core.errors import SensorError
from speechmeter.meters.energy import libraries
from speechmeter.meters.energy.libraries import find_nvml, find_zeus
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
def nvml(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def make(**kind):
        driver = Driver(**kind)
        monkeypatch.setitem(sys.modules, "pynvml", driver)
        return driver

    return make


def test_the_counter_is_read_in_joules(nvml):
    driver = nvml()
    (sensor,) = find_nvml(Device.parse("cuda")).sensors
    assert (sensor.name, sensor.domain, sensor.counter) == ("NVML cuda:0", "gpu", True)
    assert sensor.read().energy_j == pytest.approx(1234.567)
    sensor.close()
    assert driver.open == 0


def test_a_gpu_without_a_counter_is_read_by_its_power(nvml):
    nvml(counter=False)
    (sensor,) = find_nvml(Device.parse("cuda:1")).sensors
    assert (sensor.name, sensor.counter) == ("NVML cuda:1", False)
    assert sensor.read().power_w == pytest.approx(70.5)


def test_a_gpu_with_neither_says_so_and_gives_nvml_back(nvml):
    driver = nvml(counter=False, power=False)
    assert find_nvml(Device.parse("cuda")).reason == "NVML: Not Supported"
    assert driver.open == 0


def test_a_counter_that_breaks_is_a_sensor_error(nvml):
    driver = nvml()
    (sensor,) = find_nvml(Device.parse("cuda")).sensors
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
def test_the_device_is_the_one_that_the_process_sees(nvml, monkeypatch, visible, device, handle):
    driver = nvml()
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
def test_a_device_that_is_not_there_is_named(nvml, monkeypatch, visible, device, says):
    driver = nvml()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert says in find_nvml(Device.parse(device)).reason
    assert driver.open == 0


def test_without_the_library_the_reason_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert find_nvml(Device.parse("cuda")).reason == "nvidia-ml-py is not installed: pip install 'speechmeter[gpu]'"
    assert "NVML measures NVIDIA GPUs only, and this case runs on cpu" in find_nvml(Device.parse("cpu")).reason


def test_the_memory_meter_finds_its_processes_on_the_same_device(nvml, monkeypatch):
    pytest.importorskip("torch", reason="the CUDA memory meter imports torch")
    from speechmeter.meters.cuda_memory import used_bytes

    driver = nvml()
    monkeypatch.setattr("speechmeter.meters.cuda_memory.started_processes", lambda: [77])
    processes = {2: [SimpleNamespace(pid=p, usedGpuMemory=u) for p, u in ((1, 5), (os.getpid(), 7), (77, 11))]}
    driver.nvmlDeviceGetComputeRunningProcesses = processes.get
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-cccc3333")
    assert used_bytes(Device.parse("cuda:0")) == [7, 11]
    assert driver.open == 0


def test_the_real_library_on_a_machine_without_a_driver_gives_a_reason():
    pynvml = pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        assert find_nvml(Device.parse("cuda")).reason.startswith("NVML: ")
    else:
        pytest.skip("this machine has a driver")


class Gpus:
    def __init__(self, counter):
        self._counter = counter

    def supports_get_total_energy_consumption(self, gpu_index):
        return self._counter

    def get_total_energy_consumption(self, gpu_index):
        return 5000 + gpu_index

    def get_instant_power_usage(self, gpu_index):
        return 250_000


class Cpus:
    def __len__(self):
        return 2

    def get_total_energy_consumption(self, index):
        return SimpleNamespace(cpu_mj=1000.0 * (index + 1), dram_mj=None)


class Chip:
    def get_available_metrics(self):
        return {"cpu_total_mj", "gpu_mj", "ane_mj"}

    def get_total_energy_consumption(self):
        return SimpleNamespace(cpu_total_mj=7000, gpu_mj=9000)


@pytest.fixture
def zeus(monkeypatch):
    for name in ("ZEUSD_SOCK_PATH", "ZEUSD_HOST_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(libraries, "find_spec", lambda name: name)

    def make(**functions):
        def nothing():
            raise RuntimeError("nothing is here")

        found = {"get_gpus": nothing, "get_cpus": nothing, "get_soc": nothing, **functions}
        monkeypatch.setattr(libraries, "import_module", lambda name: SimpleNamespace(**found))

    return make


def test_a_gpu_by_its_counter_or_its_power(zeus):
    zeus(get_gpus=lambda: Gpus(True))
    (sensor,) = find_zeus(Device.parse("cuda:1")).sensors
    assert (sensor.name, sensor.counter, sensor.read().energy_j) == ("zeus cuda:1", True, 5.001)
    zeus(get_gpus=lambda: Gpus(False))
    (sensor,) = find_zeus(Device.parse("cuda")).sensors
    assert (sensor.counter, sensor.read().power_w) == (False, 250)


def test_packages_through_the_daemon_when_someone_runs_it(zeus, monkeypatch):
    zeus(get_cpus=Cpus)
    assert find_zeus(Device.parse("cpu")).reason == "zeus finds no sensor"
    monkeypatch.setenv("ZEUSD_SOCK_PATH", "/run/zeusd.sock")
    assert [s.read().energy_j for s in find_zeus(Device.parse("cpu")).sensors] == [1, 2]


def test_apple_silicon(zeus, monkeypatch):
    zeus(get_soc=Chip)
    monkeypatch.setattr(sys, "platform", "darwin")
    found = {s.domain: s.read().energy_j for s in find_zeus(Device.read("mps")).sensors}
    assert found == {"cpu": 7, "gpu": 9}


def test_what_zeus_raises_is_the_reason(zeus, monkeypatch):
    zeus()
    assert find_zeus(Device.parse("cuda")).reason == "nothing is here"
    zeus(get_gpus=lambda: SimpleNamespace(supports_get_total_energy_consumption=lambda index: True))
    assert "get_total_energy_consumption" in find_zeus(Device.parse("cuda")).reason


def test_a_reading_that_fails_is_a_sensor_error(zeus):
    gpus = Gpus(True)
    zeus(get_gpus=lambda: gpus)
    (sensor,) = find_zeus(Device.parse("cuda:0")).sensors
    assert sensor.read().energy_j == 5
    zeus(
        get_gpus=lambda: SimpleNamespace(
            supports_get_total_energy_consumption=lambda index: True, get_total_energy_consumption=lambda index: 1 / 0
        )
    )
    (broken,) = find_zeus(Device.parse("cuda:0")).sensors
    with pytest.raises(SensorError, match="zeus: division by zero"):
        broken.read()


def test_without_zeus_the_reason_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(libraries, "find_spec", lambda name: None)
    assert find_zeus(Device.parse("cuda")).reason == "zeus is not installed: pip install 'speechmeter[zeus]'"


def test_the_real_package_has_the_names_we_use():
    device = pytest.importorskip("zeus.device", reason="zeus is not installed")
    gpus = pytest.importorskip("zeus.device.gpu.common").GPUs
    cpus = pytest.importorskip("zeus.device.cpu.common").CPUs
    for owner, names in (
        (device, ("get_gpus", "get_cpus", "get_soc")),
        (gpus, ("supports_get_total_energy_consumption", "get_total_energy_consumption", "get_instant_power_usage")),
        (cpus, ("get_total_energy_consumption", "__len__")),
    ):
        assert all(callable(getattr(owner, name)) for name in names)
