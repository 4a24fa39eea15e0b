"""On a real encoder the attention's quadratic part shows at long audio, as large as its arithmetic says."""

import pytest

import speechmeter
from speechmeter.core import metrics
from speechmeter.report.growth import along
from speechmeter.report.labels import grid_groups

pytest.importorskip("transformers", reason="needs transformers: pip install 'speechmeter[transformers]'")

from speechmeter.analysis.growth import exponent, line_of, local_exponent, quadratic_part

WIDTH, LAYERS = 64, 2
CONFIG = {"hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": 2, "intermediate_size": 128,
          "conv_dim": [16] * 7, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4}  # fmt: skip
SECONDS = [5.0, 10.0, 20.0, 40.0, 80.0]
FRAME_S = 0.02


def test_the_quadratic_part_of_an_encoder_is_that_of_its_attention(tmp_path):
    plan = {"models": {"name": "small", "load": "transformers:wav2vec2", "config": CONFIG}, "seconds": SECONDS,
            "meters": "flops", "threads": 1}  # fmt: skip
    made = speechmeter.run(plan, output=tmp_path / "run", launcher="inline")
    assert not made.failed, made.failed[0].reason
    (group,) = grid_groups(made.records).values()
    (seconds,) = along(group)
    line = line_of(seconds.cases, metrics.FLOPS)
    frames = SECONDS[-1] / FRAME_S
    attention = LAYERS * 2 * 2 * frames**2 * WIDTH  # queries × keys, weights × values: 2 a multiply-accumulate
    assert quadratic_part(line).value == pytest.approx(100 * attention / line.values[-1], rel=0.01)
    assert quadratic_part(line).value > 50
    assert line.curve.worst(line.sizes, line.values) < 0.01
    assert local_exponent(line).value > exponent(line).value > 1.1
