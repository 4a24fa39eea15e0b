"""What the FLOP meter makes of a chain: which stages count, what is unavailable, and rows that add up."""

import pytest
from conftest import make_case

torch = pytest.importorskip("torch", reason="needs torch")
np = pytest.importorskip("numpy", reason="needs numpy")

from torch import nn  # noqa: E402

from speechmeter.core.protocols import Prepared  # noqa: E402
from speechmeter.core.types import Batch, Stage  # noqa: E402
from speechmeter.engine.measure import measure  # noqa: E402
from speechmeter.meters.flops.meter import FlopsMeter  # noqa: E402

LAYER_FLOPS = 2 * 8 * 8


class Chain:
    def __init__(self, *stages, **modules):
        self._stages, self._modules = stages, modules

    def prepare(self, case, device):
        return Prepared(stages=tuple(self._stages), modules=self._modules)

    def batches(self, case):
        yield Batch(data=torch.ones(1, 8), items=1, audio_s=1.0)


def counted(*stages, boundary="+copy", **modules):
    chain = Chain(*stages, **modules)
    outcome = measure(make_case(meters=("flops",), boundary=boundary), chain, chain, [FlopsMeter()], process="shapes")
    assert outcome.status == "ok", outcome.reason
    return {(m.metric, m.scope): m for m in outcome.measurements}


def numpy_only(batch):
    return torch.from_numpy(np.fft.rfft(batch.data.numpy()).real.copy())


def test_work_outside_torch_is_unavailable_and_never_zero():
    found = counted(Stage(name="features", fn=numpy_only))
    assert found["flops.v1", "total"].values == ()
    assert (
        "code that runs outside torch, and results from a cache, cannot be counted"
        in found["flops.v1", "total"].unavailable
    )


def test_a_stage_outside_torch_is_unavailable_beside_one_that_is_counted():
    layer = nn.Linear(5, 5, bias=False)
    found = counted(Stage(name="features", fn=numpy_only), Stage(name="model", fn=lambda x: layer(x.float())), m=layer)
    assert found["flops.v1", "stage:features"].unavailable
    assert found["flops.v1", "stage:model"].values == (2 * 5 * 5,)
    assert found["flops.v1", "total"].notes["no arithmetic by torch in"] == ["features"]


def test_a_module_that_two_stages_call_has_both_in_its_row():
    layer = nn.Linear(8, 8, bias=False)
    found = counted(Stage(name="model", fn=lambda batch: layer(batch.data)), Stage(name="decode", fn=layer), m=layer)
    assert found["flops.v1", "total"].values == (2 * LAYER_FLOPS,)
    assert found["flops.v1", "module:m"].values == (2 * LAYER_FLOPS,)


def test_rows_hold_what_the_total_holds():
    layer = nn.Linear(8, 8, bias=False)
    found = counted(
        Stage(name="features", fn=lambda batch: layer(batch.data)),
        Stage(name="model", fn=layer),
        boundary="model",
        m=layer,
    )
    assert found["flops.v1", "total"].values == (LAYER_FLOPS,)
    assert found["flops.v1", "module:m"].values == (LAYER_FLOPS,)
    operators = [m.values[0] for (metric, scope), m in found.items() if metric == "flops.v1" and scope[:3] == "op:"]
    assert operators == [LAYER_FLOPS]
    assert found["flops.v1", "stage:features"].values == (LAYER_FLOPS,)


def test_outer_modules_stand_before_those_inside_them():
    model = nn.Sequential(nn.Linear(8, 8), nn.Sequential(nn.Linear(8, 8)))
    found = counted(Stage(name="model", fn=lambda batch: model(batch.data)), m=model)
    assert [scope for metric, scope in found if scope.startswith("module:")] == [
        "module:m",
        "module:m.0",
        "module:m.1",
        "module:m.1.0",
    ]


def test_an_unknown_operator_has_a_row_without_a_figure():
    with torch.library._scoped_library("plug", "FRAGMENT") as library:
        library.define("kernel(Tensor x) -> Tensor")
        library.impl("kernel", lambda x: x.clone(), "CompositeExplicitAutograd")
        found = counted(Stage(name="model", fn=lambda batch: torch.ops.plug.kernel(batch.data) * 2))
    row = found["flops.v1", "op:plug::kernel"]
    assert row.values == ()
    assert row.notes["kind"] == "unknown"
    assert found["flops.v1", "total"].notes["unknown"] == {"plug::kernel": 1}
