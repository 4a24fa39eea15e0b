"""The zoo on a CUDA device, in every number format. Skipped where there is none."""

import numpy as np
import pytest
from conftest import make_case

torch = pytest.importorskip("torch", reason="needs torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device on this machine", allow_module_level=True)

from speechmeter.core import plugins  # noqa: E402
from speechmeter.core.stages import run_chain  # noqa: E402
from speechmeter.core.types import Batch, Spec  # noqa: E402

NAMES = ("mockingjay", "tera", "hubert", "wav2vec2", "apc", "cpc")
TOLERANCE = {"float32": 1e-3, "bfloat16": 0.2, "float16": 0.05}
FRAMES = 20


def output(name, device, dtype, lengths):
    data = np.random.default_rng(0).standard_normal((len(lengths), max(lengths)), dtype=np.float32)
    case = make_case(subject=Spec(plugin=name, name=name), device=device, dtype=dtype)
    prepared = plugins.subject(name).prepare(case, device)
    made = run_chain(prepared.stages, Batch(data=data, items=len(lengths), lengths=lengths))[-1]
    states = made[0] if isinstance(made, tuple) else made
    return states[:, :FRAMES].float().cpu()


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("lengths", [(16000, 16000), (16000, 9000)], ids=["alike", "padded"])
@pytest.mark.parametrize("name", NAMES)
def test_an_encoder_gives_on_cuda_what_it_gives_on_the_cpu(name, lengths, dtype):
    expected = output(name, "cpu", "float32", lengths)
    found = output(name, "cuda", dtype, lengths)
    assert (found - expected).abs().mean() < TOLERANCE[dtype] * expected.abs().mean()


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_the_conformer_decodes_on_cuda(dtype):
    case = make_case(subject=Spec(plugin="conformer-ctc", name="conformer-ctc"), device="cuda", dtype=dtype)
    prepared = plugins.subject("conformer-ctc").prepare(case, "cuda")
    data = np.random.default_rng(0).standard_normal((2, 16000), dtype=np.float32)
    tokens = run_chain(prepared.stages, Batch(data=data, items=2, lengths=(16000, 9000)))[-1]
    assert [0 < len(row) <= 25 for row in tokens] == [True, True]
