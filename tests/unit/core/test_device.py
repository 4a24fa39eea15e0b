import pytest
from conftest import make_case

from speechmeter.core.device import Device
from speechmeter.core.errors import DeviceError
from speechmeter.core.types import Case

ODD = ["mps:0", "CUDA", "cuda0", "cuda:-1", "cuda:01", "cuda:" + "9" * 5000, "cpu:0", "", "a\nb", 7, None, True]


@pytest.mark.parametrize(
    ("text", "kind", "index"),
    [("cpu", "cpu", None), ("cuda", "cuda", None), ("cuda:0", "cuda", 0), ("cuda:12", "cuda", 12)],
)
def test_a_device_is_parsed_and_gives_its_text_back(text, kind, index):
    device = Device.parse(text)
    assert (device.kind, device.index, str(device)) == (kind, index, text)
    assert device.is_cuda is (kind == "cuda")
    assert device.is_cpu is (kind == "cpu")


@pytest.mark.parametrize("text", [*map(str, ODD), "cuda:", "cuda:1 ", "cuda:1\n", "cuda:٣", "cudas", " cpu", "gpu"])
def test_any_other_text_is_refused_with_the_way_out(text):
    with pytest.raises(DeviceError, match=r"there is no device .*; use cpu, cuda or cuda:N$"):
        Device.parse(text)


@pytest.mark.parametrize("value", ODD)
def test_reading_takes_any_value_keeps_its_text_and_tells_cuda_by_its_beginning(value):
    device = Device.read(value)
    assert str(device) == str(value)
    assert device.is_cuda is (str(value)[:4] == "cuda")


def test_a_case_has_its_device_and_the_same_id_and_json_as_before():
    case = make_case(device="cuda:1")
    before = case.id, case.to_json()
    assert case.device == Device(kind="cuda", index=1)
    assert case.device is case.device
    assert (Case.from_json(case.to_json()).id, case.to_json()) == before


def test_a_case_without_the_axis_runs_on_the_cpu():
    case = make_case()
    data = case.to_json()
    del data["axes"]["device"]
    assert Case.from_json(data).device.is_cpu
