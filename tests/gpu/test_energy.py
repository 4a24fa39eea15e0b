"""The energy counter of a real GPU. Skipped where there is none, or where NVML has nothing to say."""

import pytest
from conftest import make_case

torch = pytest.importorskip("torch", reason="needs torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device on this machine", allow_module_level=True)
pynvml = pytest.importorskip("pynvml", reason="needs nvidia-ml-py")

from speechmeter.core.device import Device  # noqa: E402
from speechmeter.core.protocols import Prepared  # noqa: E402
from speechmeter.core.types import Batch, Stage  # noqa: E402
from speechmeter.engine.measure import measure  # noqa: E402
from speechmeter.meters.energy.libraries import find_nvml  # noqa: E402
from speechmeter.meters.energy.meter import EnergyMeter  # noqa: E402
from speechmeter.subjects.torch_runtime import sync_for  # noqa: E402

if find_nvml(Device.parse("cuda")).reason:
    pytest.skip(find_nvml(Device.parse("cuda")).reason, allow_module_level=True)


class Multiplies:
    """`batch.data` products of two matrices: twice the number is twice the energy."""

    def __init__(self, products):
        self._products = products
        self._matrix = torch.randn(4096, 4096, device="cuda")

    def prepare(self, case, device):
        return Prepared(stages=(Stage(name="model", fn=self._multiply),), sync=sync_for(device))

    def _multiply(self, batch):
        for _ in range(batch.data):
            torch.mm(self._matrix, self._matrix)

    def batches(self, case):
        yield Batch(data=self._products, items=1)


def readings(products):
    subject = Multiplies(products)
    outcome = measure(make_case(device="cuda"), subject, subject, [EnergyMeter()])
    assert outcome.status == "ok", outcome.reason
    return {m.metric: m for m in outcome.measurements}


def limit_w():
    pynvml.nvmlInit()
    return pynvml.nvmlDeviceGetPowerManagementLimit(pynvml.nvmlDeviceGetHandleByIndex(0)) / 1e3


def test_energy_is_proportional_to_work_and_power_stays_within_the_cards_limit():
    once, twice = readings(20), readings(40)
    energy = sorted(once["energy_gpu.v1"].values)
    assert len(energy) == 3
    assert energy[2] / energy[0] < 1.1
    assert sorted(twice["energy_gpu.v1"].values)[1] / energy[1] == pytest.approx(2, rel=0.05)
    idle_w, power_w = once["power_gpu_idle.v1"].values[0], sorted(once["power_gpu.v1"].values)[1]
    assert 0 < idle_w < power_w < 1.1 * limit_w()
    assert once["energy_gpu.v1"].notes["sensor"].startswith("NVML cuda:0")
