"""FLOPs on a CUDA device against the same formulas, and the meters that stand on them. Skipped where there is none."""

import pytest
from conftest import make_case

torch = pytest.importorskip("torch", reason="needs torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device on this machine", allow_module_level=True)
pytest.importorskip("transformers", reason="needs transformers")

from flop_truths import TRUTHS  # noqa: E402

from speechmeter.core import plugins  # noqa: E402
from speechmeter.core.types import Spec  # noqa: E402
from speechmeter.engine.measure import measure  # noqa: E402
from speechmeter.meters.flops.count import count  # noqa: E402
from speechmeter.meters.flops.shapes_only import shapes_only  # noqa: E402

ON_CUDA = [truth for truth in TRUTHS if "cuda" in truth.devices]


def check(truth, counted):
    assert counted.forward == pytest.approx(truth.forward, rel=0.005)
    if truth.backward is not None:
        assert counted.backward == pytest.approx(truth.backward_on("cuda"), rel=0.005)
    assert counted.unknown() == {}


@pytest.mark.parametrize("truth", ON_CUDA, ids=lambda truth: truth.name)
def test_a_real_run_counts_what_the_formula_says(truth):
    check(truth, count(truth.build("cuda")))


@pytest.mark.parametrize("truth", ON_CUDA, ids=lambda truth: truth.name)
def test_shapes_alone_count_the_same(truth):
    with shapes_only() as mode:
        call = truth.build("cuda")
        mode.building, mode.pinned = False, True
        check(truth, count(call))


def test_no_operator_of_a_whisper_is_unknown_and_the_gpu_is_seen_at_work():
    case = make_case(
        subject=Spec(plugin="transformers", name="whisper", source="whisper"), device="cuda", meters=("operators",)
    )
    meters = [plugins.meter(name) for name in ("latency", "peaks", "operators")]
    outcome = measure(case, plugins.subject("transformers"), plugins.workload("audio"), meters)
    assert outcome.status == "ok", outcome.reason
    found = {(m.metric, m.scope): m for m in outcome.measurements}
    times = {scope: m.values[0] for (metric, scope), m in found.items() if metric == "time_operator.v1"}
    assert times["kind:unknown"] <= 0.001 * times["total"]
    assert times["kind:matrix"] > 0.2 * times["total"]
    latency = sorted(found["latency.v1", "total"].values)[0]
    assert 0 < found["time_gpu.v1", "total"].values[0] < 1.5 * latency
    assert found["peak_flops.v1", "total"].values[0] > 1e12
    assert found["gpu_clock.v1", "total"].values[-1] > 0
    assert found["gpu_temperature.v1", "total"].values[0] > 0
