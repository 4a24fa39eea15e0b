"""What is done on a machine of a cluster, here in a process of its own without any cluster."""

import json
import os
import subprocess
import sys

from conftest import make_case

from speechmeter import __version__
from speechmeter.core.machine import available_cores
from speechmeter.core.types import Limits, Spec
from speechmeter.launch.muster import Wishes
from speechmeter.launch.node import told

FIRST = available_cores()[0]


def fake(name):
    return make_case(name, subject=Spec(plugin="python", name=name, source=f"fakes.py:{name}"))


def asked(workshop, code, *cases, folder=None, environ=None, **extra):
    """The answer of `code`, which finds what it is told in `told`, in a process that stands elsewhere."""
    setting = {**Wishes(cases=cases, limits=Limits(time_s=60)).setting(), "folder": str(folder or workshop), **extra}
    setting["cases"] = [case.to_json() for case in cases]
    program = (
        "import json, sys\n"
        "from speechmeter.launch.node import Bench, survey\n"
        f"told = json.load(sys.stdin)\nanswer = {code}\n"
        "answer['files'] = {name: len(data) for name, data in answer.get('files', {}).items()}\n"
        "print(json.dumps(answer))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(setting),
        capture_output=True,
        text=True,
        cwd="/",
        env={**os.environ, **(environ or {})},
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


MEASURE = "Bench(told).measure({'case': told['cases'][0], 'extent': 'all'})"


def test_a_machine_tells_what_it_is_and_what_it_cannot_measure(workshop):
    fine, no_gpu = fake("nothing"), make_case(device="cuda")
    missing = make_case("m", subject=Spec(plugin="python", name="m", source="absent.py:make"))
    answer = asked(workshop, "survey(told)", fine, no_gpu, missing, gpus=0, environ={"SPEECHMETER_HOST": "node-7"})
    assert (answer["version"], answer["host"], answer["cores"]) == (__version__, "node-7", list(available_cores()))
    assert fine.id not in {**answer["absent"], **answer["refused"]}
    assert "absent.py" in answer["absent"][missing.id]
    assert "CUDA" in answer["refused"][no_gpu.id]


def test_files_that_only_the_driver_has_are_missed_there(workshop, tmp_path):
    case = fake("nothing")
    answer = asked(workshop, "survey(told)", case, gpus=0, folder=tmp_path / "not-here")
    assert "fakes.py" in answer["absent"][case.id]


def test_a_bench_measures_in_a_fresh_process_and_sends_back_what_it_left(workshop):
    case = fake("words")
    answer = asked(workshop, MEASURE, case, cores=[FIRST], environ={"SPEECHMETER_HOST": "node-7"})
    found = told(answer)
    assert (found.outcome.status, found.host) == ("ok", "node-7")
    assert found.wall_s > 0 and found.started.startswith("20")
    assert f"{case.id}/text.tsv" in answer["files"]
    assert found.outcome.environment.facts["cores"] == [FIRST]


def test_threads_are_those_of_the_case_whatever_the_cluster_set(workshop):
    answer = asked(workshop, MEASURE, fake("environment"), cores=[FIRST], environ={"OMP_NUM_THREADS": "77"})
    assert "OMP_NUM_THREADS=1 " in told(answer).outcome.reason


def test_a_failed_case_sends_the_end_of_its_output(workshop):
    answer = asked(workshop, MEASURE, fake("raiser"), cores=[FIRST])
    assert told(answer).outcome.status == "error"
    assert "the model is unhappy" in told(answer).outcome.reason
