"""What is done on a machine of a cluster, here in a process of its own without any cluster."""

import json
import os
import subprocess
import sys

from conftest import make_case

from speechmeter import __version__
from speechmeter.core.machine import available_cores
from speechmeter.core.types import Limits, Spec
from speechmeter.launch.cluster import Requirements
from speechmeter.launch.node import measured_from, pack, unpack

FIRST = available_cores()[0]


def fake(name):
    return make_case(name, subject=Spec(plugin="python", name=name, source=f"fakes.py:{name}"))


def asked(workshop, code, *cases, folder=None, environ=None, **extra):
    """The answer of `code`, which has its setting in `setting`, in a process with another working directory."""
    setting = {
        **Requirements(cases=cases, limits=Limits(time_s=60)).setting(),
        "folder": str(folder or workshop),
        **extra,
    }
    setting["cases"] = [case.to_json() for case in cases]
    program = (
        "import json, sys\n"
        "from speechmeter.launch.node import Worker, survey\n"
        f"setting = json.load(sys.stdin)\nanswer = {code}\n"
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


MEASURE = "Worker(setting).measure({'case': setting['cases'][0], 'extent': 'all', 'round': 0})"


def test_a_machine_tells_what_it_is_and_what_it_cannot_measure(workshop):
    fine, no_gpu = fake("nothing"), make_case(device="cuda")
    missing = make_case("m", subject=Spec(plugin="python", name="m", source="absent.py:make"))
    answer = asked(workshop, "survey(setting)", fine, no_gpu, missing, gpus=0, environ={"SPEECHMETER_HOST": "node-7"})
    assert (answer["version"], answer["host"], answer["cores"]) == (__version__, "node-7", list(available_cores()))
    assert fine.id not in {**answer["absent"], **answer["refused"]}
    assert "absent.py" in answer["absent"][missing.id]
    assert "CUDA" in answer["refused"][no_gpu.id]


def test_files_that_only_the_driver_has_are_missed_there(workshop, tmp_path):
    case = fake("nothing")
    answer = asked(workshop, "survey(setting)", case, gpus=0, folder=tmp_path / "not-here")
    assert "fakes.py" in answer["absent"][case.id]


def test_a_worker_measures_in_a_fresh_process_and_sends_back_what_it_left(workshop):
    case = fake("words")
    answer = asked(workshop, MEASURE, case, cores=[FIRST], environ={"SPEECHMETER_HOST": "node-7"})
    found = measured_from(answer)
    assert (found.outcome.status, found.host) == ("ok", "node-7")
    assert found.wall_s > 0 and found.started.startswith("20")
    assert f"{case.id}/text.tsv" in answer["files"]
    assert found.outcome.environment.facts["cores"] == [FIRST]


def test_threads_are_those_of_the_case_whatever_the_cluster_set(workshop):
    answer = asked(workshop, MEASURE, fake("environment"), cores=[FIRST], environ={"OMP_NUM_THREADS": "77"})
    assert "OMP_NUM_THREADS=1 " in measured_from(answer).outcome.reason


def test_a_failed_case_sends_the_end_of_its_output(workshop):
    answer = asked(workshop, MEASURE, fake("raiser"), cores=[FIRST])
    assert measured_from(answer).outcome.status == "error"
    assert "the model is unhappy" in measured_from(answer).outcome.reason


def test_what_is_packed_is_unpacked_as_it_was(tmp_path):
    there, here = tmp_path / "there", tmp_path / "here"
    (there / "case/deep").mkdir(parents=True)
    (there / "case/deep/text.tsv").write_text("a\tb")
    (there / "log.txt").write_bytes(b"\0\1")
    packed, left_out = pack(there)
    assert (unpack(packed, here), left_out) == ([], [])
    assert (here / "case/deep/text.tsv").read_text() == "a\tb"
    assert (here / "log.txt").read_bytes() == b"\0\1"


def test_what_is_too_much_is_named_and_the_small_files_are_transferred(tmp_path):
    for name, size in (("big", 3 * 2**20), ("small", 10), ("middle", 600_000), ("other", 600_000)):
        (tmp_path / name).write_bytes(b"x" * size)
    packed, left_out = pack(tmp_path, most_bytes=2**20)
    assert sorted(packed) == ["middle", "small"]
    assert [line.partition(" ")[0] for line in left_out] == ["other", "big"]
    assert "3 MiB" in left_out[1]


def test_links_are_not_transferred(tmp_path):
    (tmp_path / "secret").write_text("x")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "secret")
    assert pack(folder) == ({}, [])


def test_names_and_links_that_lead_out_are_refused(tmp_path):
    folder, outside = tmp_path / "artifacts", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (folder / "link").symlink_to(outside)
    names = ["../x", "/tmp/speechmeter-x", "a/../../x", "link/x", "", ".", "nul\0"]
    refused = unpack({**dict.fromkeys(names, b"evil"), "fine/x": b"good"}, folder)
    assert len(refused) == len(names)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [folder / "fine/x"]
