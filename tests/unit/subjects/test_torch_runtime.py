"""Settings of torch that a case asks for hold, whatever an import does."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

torch = pytest.importorskip("torch")
from speechmeter.subjects.torch_runtime import tf32_kept  # noqa: E402


@pytest.mark.parametrize("asked", [True, False])
def test_tf32_is_what_it_was_after_an_import_that_switches_it(asked):
    with tf32_kept():
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = asked
        _switched_inside(asked)


def _switched_inside(asked):
    with tf32_kept():
        torch.backends.cuda.matmul.allow_tf32 = not asked
        torch.backends.cudnn.allow_tf32 = not asked
    assert (torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32) == (asked, asked)


@pytest.mark.skipif(find_spec("speechbrain") is None, reason="needs SpeechBrain")
def test_importing_speechbrain_leaves_tf32_off():
    code = (
        "import torch; torch.backends.cudnn.allow_tf32 = False; "
        "from speechmeter.subjects.losses.others import speechbrain; speechbrain(); "
        "import speechbrain.utils.quirks as quirks; assert 'allow_tf32' in quirks.applied_quirks; "
        "print(torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ["False False"], done.stderr
