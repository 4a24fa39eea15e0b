"""What a cluster does on a machine with a GPU, without any cluster: the device is pinned, and the record says which."""

import json
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device on this machine", allow_module_level=True)

PROGRAM = """
import json
from speechmeter.core.machine import available_cores
from speechmeter.core.types import Limits
from speechmeter.launch.cluster import Requirements
from speechmeter.launch.node import Worker, measured_from, survey
from speechmeter.plan.study import study_from_python

plan = {"models": ["log-mel"], "seconds": 1, "device": "cuda", "cores": 1, "threads": 1, "meters": ["latency"]}
(case,) = study_from_python(plan).cells.cases
setting = Requirements(cases=[case], limits=Limits(time_s=300)).setting()
answer = survey({**setting, "cases": [case.to_json()], "gpus": 1})
worker = Worker({**setting, "cores": [available_cores()[-1]]})
found = measured_from(worker.measure({"case": case.to_json(), "extent": "all", "round": 0}))
environment = found.outcome.environment
facts = environment.facts if environment else {}
print(json.dumps({
    "known": case.id not in {**answer["absent"], **answer["refused"]},
    "status": found.outcome.status, "reason": found.outcome.reason,
    "pinned": facts.get("pinned"), "gpu": facts.get("gpu"), "cores": facts.get("cores"),
}))
"""


def test_a_pinned_gpu_is_measured_on_and_named():
    last = torch.cuda.device_count() - 1
    environ = {**os.environ, "CUDA_VISIBLE_DEVICES": str(last)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environ, check=False)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    assert (answer["known"], answer["status"], answer["reason"]) == (True, "ok", "")
    assert answer["pinned"] == str(last)
    assert answer["gpu"] == torch.cuda.get_device_properties(last).name
    assert len(answer["cores"]) == 1
