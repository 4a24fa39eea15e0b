"""zeus played by a module with its 0.16 names; the real one where it is installed."""

import sys
from types import SimpleNamespace

import pytest

from speechmeter.core.device import Device
from speechmeter.core.errors import SensorError
from speechmeter.meters.energy.sensors import zeus


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
def install(monkeypatch):
    for name in ("ZEUSD_SOCK_PATH", "ZEUSD_HOST_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(zeus, "find_spec", lambda name: name)

    def make(**functions):
        def nothing():
            raise RuntimeError("nothing is here")

        found = {"get_gpus": nothing, "get_cpus": nothing, "get_soc": nothing, **functions}
        monkeypatch.setattr(zeus, "import_module", lambda name: SimpleNamespace(**found))

    return make


def test_a_gpu_by_its_counter_or_its_power(install):
    install(get_gpus=lambda: Gpus(True))
    (sensor,) = zeus.find(Device.parse("cuda:1")).sensors
    assert (sensor.name, sensor.counter, sensor.read().energy_j) == ("zeus cuda:1", True, 5.001)
    install(get_gpus=lambda: Gpus(False))
    (sensor,) = zeus.find(Device.parse("cuda")).sensors
    assert (sensor.counter, sensor.read().power_w) == (False, 250)


def test_packages_through_the_daemon_when_someone_runs_it(install, monkeypatch):
    install(get_cpus=Cpus)
    assert zeus.find(Device.parse("cpu")).reason == "zeus finds no sensor"
    monkeypatch.setenv("ZEUSD_SOCK_PATH", "/run/zeusd.sock")
    assert [s.read().energy_j for s in zeus.find(Device.parse("cpu")).sensors] == [1, 2]


def test_apple_silicon(install, monkeypatch):
    install(get_soc=Chip)
    monkeypatch.setattr(sys, "platform", "darwin")
    found = {s.domain: s.read().energy_j for s in zeus.find(Device.read("mps")).sensors}
    assert found == {"cpu": 7, "gpu": 9}


def test_what_zeus_raises_is_the_reason(install, monkeypatch):
    install()
    assert zeus.find(Device.parse("cuda")).reason == "nothing is here"
    install(get_gpus=lambda: SimpleNamespace(supports_get_total_energy_consumption=lambda index: True))
    assert "get_total_energy_consumption" in zeus.find(Device.parse("cuda")).reason


def test_a_reading_that_fails_is_a_sensor_error(install):
    gpus = Gpus(True)
    install(get_gpus=lambda: gpus)
    (sensor,) = zeus.find(Device.parse("cuda:0")).sensors
    broken = zeus.ZeusSensor(name="z", domain="gpu", ask=lambda: 1 / 0, counter=True)
    with pytest.raises(SensorError, match="zeus: division by zero"):
        broken.read()
    assert sensor.read().energy_j == 5


def test_without_the_package_the_way_to_get_it_is_told(monkeypatch):
    monkeypatch.setattr(zeus, "find_spec", lambda name: None)
    assert zeus.find(Device.parse("cuda")).reason == "zeus is not installed: pip install 'speechmeter[zeus]'"


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
