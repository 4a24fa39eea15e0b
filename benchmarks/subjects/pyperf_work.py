"""The log-mel front-end as pyperf measures it: each process imports torch anew. Arguments: SECONDS, then pyperf's."""

from __future__ import annotations

import sys

import pyperf

SECONDS = float(sys.argv.pop(1))

runner = pyperf.Runner(program_args=(__file__, str(SECONDS)))  # its workers are told too
runner.parse_args()
if runner.args.worker:
    import torch

    from speechmeter.subjects.zoo.chain import LogMel

    torch.set_num_threads(2)
    model, samples = LogMel().eval(), torch.randn(1, int(SECONDS * 16_000))
    with torch.inference_mode():
        runner.bench_func("log-mel", model, samples)
else:
    runner.bench_func("log-mel", lambda: None)
