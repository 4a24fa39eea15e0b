"""Transducer losses on a CUDA device: they agree with the oracle, and what the caller keeps shows in the peak."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device on this machine", allow_module_level=True)

from speechmeter.core.stages import run_chain  # noqa: E402
from speechmeter.core.types import Batch  # noqa: E402
from speechmeter.subjects.losses import agreement, step  # noqa: E402
from speechmeter.subjects.losses.known import ALL, BY_NAME, CUDA  # noqa: E402

HERE = [known for known in ALL if known.missing() is None and CUDA in known.devices]
SIZES = ((120, 30), (100, 28))
VOCABULARY = 500


@pytest.mark.parametrize("known", HERE, ids=lambda known: known.name)
def test_every_loss_that_is_here_agrees(known):
    agreement.check(agreement.deviations(known, known.implementation(), "cuda", torch.float32, 0, 5))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_ours_agree_in_half_precision(dtype):
    agreement.check(agreement.deviations(BY_NAME["ours"], BY_NAME["ours"].implementation(), "cuda", dtype, 0, 5))


def peak_growth_bytes(keep):
    recipe = step.Recipe(known=BY_NAME["ours"], vocabulary=VOCABULARY, dtype=torch.float32, device="cuda", keep=keep)
    output = torch.nn.Linear(step.WIDTH, VOCABULARY).cuda()
    stages = step.step_stages(recipe, output, BY_NAME["ours"].implementation())
    batch = Batch(data=np.array(SIZES, dtype=np.int32), items=len(SIZES))
    run_chain(stages, batch)
    output.zero_grad(set_to_none=True)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run_chain(stages, batch)
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def test_what_the_caller_keeps_shows_in_the_peak():
    cells = len(SIZES) * max(t for t, _ in SIZES) * (max(u for _, u in SIZES) + 1)
    joined, logits = (4 * cells * width for width in (step.WIDTH, VOCABULARY))
    none, original = peak_growth_bytes(False), peak_growth_bytes(True)
    # the joiner's input is never needed; the logits are, until their gradient is there
    assert 0.9 * joined <= original - none <= 1.1 * (joined + logits)
