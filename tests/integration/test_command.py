"""The command as a user types it: bad input, dry runs, formats, start-up."""

import json
import subprocess
import sys

import pytest

PLAN = "models: [python:fakes.py:nothing]\nseconds: [1, 2, 5, 8, 32]\nbatch: [1, 4, 8]\ntriangle: true\n"

BAD = {
    "missing file": (["run", "absent.yaml"], "absent.yaml: the plan file does not exist"),
    "a directory": (["run", "."], ".: this is a directory"),
    "unknown key": (["run", "--model", "log-mel", "--set", "tread=1"], "--set tread: unknown key 'tread'"),
    "negative": (["run", "--model", "log-mel", "--seconds", "-1"], "--seconds: seconds must be greater than 0"),
    "not a number": (["run", "--model", "log-mel", "--seconds", "NaN"], "--seconds: seconds takes a number"),
    "nan": (["run", "--model", "log-mel", "--seconds", ".nan"], "--seconds: seconds must be finite"),
    "empty": (["run", "--model", "log-mel", "--seconds", ""], "--seconds: seconds: an empty list"),
    "no such file": (["run", "--model", "python:absent.py:make"], "--model: there is no file 'absent.py'"),
    "no such factory": (["run", "--model", "python:fakes.py:nothin"], "did you mean 'nothing'?"),
    "no such module": (["run", "--model", "python:not.a.module:make"], "--model: there is no module 'not.a.module'"),
    "no factory": (["run", "--model", "python:fakes.py"], "does not name a factory"),
    "no such model": (["run", "--model", "transformers:wav2vec3"], "did you mean 'wav2vec2'?"),
    "no such directory": (["run", "--model", "transformers:./nowhere"], "no such directory"),
    "empty directory": (["run", "--model", "transformers:empty"], "contains no config.json"),
    "hub when offline": (["run", "--model", "transformers:some/model", "--offline"], "not in the local cache"),
    "no CUDA": (
        ["run", "--model", "python:fakes.py:nothing", "--device", "cuda"],
        "there is no CUDA device on this machine; use --device cpu",
    ),
    "no such device": (
        ["run", "--model", "python:fakes.py:nothing", "--device", "tpu"],
        "--device: there is no device",
    ),
    "too many cores": (
        ["run", "--model", "python:fakes.py:nothing", "--cores", "4096"],
        "--cores: 4096 cores were requested, and",
    ),
    "too much memory": (
        ["run", "--model", "python:fakes.py:nothing", "--set", "limits.memory_gib=99999"],
        "this machine has less memory than the limit of 99999 GiB",
    ),
    "no such audio": (
        ["run", "--model", "python:fakes.py:nothing", "--audio", "no.wav"],
        "--audio: 'no.wav' does not exist",
    ),
    "resume what": (["run", "--resume"], "--resume: the run directory to continue is missing"),
    "resume a typo": (["run", "--resume", "-o", "absent"], "absent: there is no such directory"),
    "retry what": (["run", "--model", "python:fakes.py:nothing", "--retry-failed"], "--retry-failed"),
    "inline cores": (
        ["run", "--model", "python:fakes.py:nothing", "--launcher", "inline", "--cores", "1"],
        "--cores: --launcher inline measures in this process",
    ),
    "no such launcher": (["run", "--model", "python:fakes.py:nothing", "--launcher", "kubernetes"], "--launcher"),
    "show nothing": (["show", "absent"], "absent: there is no such directory"),
    "show a folder": (["show", "empty"], "empty: this is not a run directory"),
    "compare's business": (["show", "empty", "--format", "xml"], "--format: unknown format 'xml'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_and_writes_nothing(name, cli, workshop):
    (workshop / "empty").mkdir()
    before = sorted(path.name for path in workshop.iterdir())
    args, words = BAD[name]
    if "cuda" in args and _has_cuda():
        pytest.skip("this machine has a CUDA device, so asking for one is no bad input")
    done = cli(*args)
    assert done.returncode == 2, done.stdout + done.stderr
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""
    assert sorted(path.name for path in workshop.iterdir()) == before


def _has_cuda():
    from speechmeter.launch.preflight import cuda_devices

    return cuda_devices() > 0


def test_dry_run_lists_cases_skipped_cells_and_time(cli, workshop):
    (workshop / "plan.yaml").write_text(PLAN)
    done = cli("run", "plan.yaml", "--trust", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("left out: excluded by `triangle`, which skips long audio with a large batch") == 5
    assert done.stdout.count("· 5 rounds (up to 20)") == 10
    assert "10 cases, 5 skipped, 0 unavailable; 50 measurements, no similar case was measured" in done.stdout
    assert not (workshop / "runs").exists()


def test_a_plans_name_cannot_leave_the_runs_folder(cli, workshop):
    args = ["run", "--model", "python:fakes.py:nothing", "--quick", "--meters", "latency"]
    assert cli(*args, "--set", "name=a/../../outside-of-runs").returncode == 0
    (run,) = (workshop / "runs").iterdir()
    assert run.name.endswith("-a-..-..-outside-of-runs")
    assert not list(workshop.parent.glob("outside-of-runs*"))


def test_dry_run_learns_from_earlier_runs(cli, workshop):
    args = ["run", "--model", "python:fakes.py:nothing", "--meters", "latency", "--rounds", "1"]
    assert cli(*args).returncode == 0
    assert "1 from the same case" in cli(*args, "--dry-run").stdout


def test_skipped_cells_say_so(cli, workshop):
    (workshop / "plan.yaml").write_text(PLAN.replace("[1, 2, 5, 8, 32]", "[1, 2]") + "rounds: 1\nmeters: [latency]\n")
    done = cli("run", "plan.yaml", "--trust", "-o", "run")
    assert done.returncode == 0, done.stderr
    cells = json.loads(cli("show", "run", "--metric", "rtf", "--format", "json").stdout)[0]["rows"][1]["cells"]
    assert [cell["text"] for cell in cells][2] == "skipped"


def test_a_plan_on_flags_alone_and_the_default_directory(cli, workshop):
    done = cli("run", "--model", "python:fakes.py:nothing", "--seconds", "1,2", "--batch", "1,4", "--quick")
    assert done.returncode == 0, done.stderr
    (run,) = (workshop / "runs").iterdir()
    assert sorted(path.name for path in run.iterdir()) == [
        "artifacts", "environments.jsonl", "plan.yaml", "planned.json", "records.jsonl",
    ]  # fmt: skip
    assert "one round" in done.stdout
    assert str(run.relative_to(workshop)) in done.stdout


def test_inline_measures_what_can_share_a_process(cli, workshop):
    done = cli("run", "--model", "python:fakes.py:slow", "--quick", "--launcher", "inline", "-o", "run")
    assert done.returncode == 0, done.stderr
    (record,) = map(json.loads, (workshop / "run/records.jsonl").read_text().splitlines())
    found = {m["metric"]: m for m in record["measurements"]}
    assert min(found["latency.v1"]["values"]) >= 0.1
    assert "launcher: subprocess" in found["memory_cpu_total.v1"]["unavailable"]


def test_peak_memory_sees_a_short_spike(cli, workshop):
    done = cli("run", "--model", "python:fakes.py:allocator", "--quick", "--meters", "memory", "-o", "run")
    assert done.returncode == 0, done.stderr
    (record,) = map(json.loads, (workshop / "run/records.jsonl").read_text().splitlines())
    readings = next(m for m in record["measurements"] if m["metric"] == "memory_cpu_peak.v1")
    assert len(readings["values"]) == 3
    for value in readings["values"]:
        assert abs(value - 64 * 2**20) < 2 * 2**20
    assert readings["notes"]["mmap_threshold"] == "65536"


def test_text_from_noise_is_warned_of_in_show(cli):
    done = cli("run", "--model", "python:fakes.py:words", "--quick", "--meters", "latency", "-o", "run")
    assert "warning: the input is noise" in done.stdout
    done = cli("run", "--model", "python:fakes.py:words", "--quick", "--meters", "latency", "--audio", "sample")
    assert "warning" not in done.stdout


def test_an_absent_package_leaves_the_rest_measured(cli, workshop):
    blocker = workshop / "site"
    blocker.mkdir()
    (workshop / "site" / "sitecustomize.py").write_text(
        "import importlib.util as u\nreal = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'transformers' else real(name, *a)\n"
    )
    done = cli(
        "run", "--model", "python:fakes.py:nothing", "--model", "transformers:wav2vec2", "--quick",
        "--meters", "latency", "-o", "run", PYTHONPATH=str(blocker),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "unavailable" in done.stdout
    assert "pip install 'speechmeter[transformers]'" in done.stdout
    alone = cli("run", "--model", "transformers:wav2vec2", PYTHONPATH=str(blocker))
    assert (alone.returncode, alone.stdout) == (2, "")


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from typer.testing import CliRunner; from speechmeter.cli.main import app; "
        "print(CliRunner().invoke(app, ['--help']).output); "
        "print('HEAVY', [m for m in ('torch', 'pydantic', 'duckdb', 'numpy', 'scipy', 'yaml') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "HEAVY []" in done.stdout
    for command in ("run", "show", "models", "doctor"):
        assert command in done.stdout


def test_show_and_compare_import_no_torch_no_duckdb_and_no_schema_of_plans(workshop, cli):
    assert (
        cli("run", "--model", "python:fakes.py:nothing", "--quick", "--meters", "latency", "-o", "run").returncode == 0
    )
    code = (
        # importing them now fails; typer imports pydantic itself, so of ours the schema alone is forbidden
        "import sys; sys.modules.update(dict.fromkeys(('torch', 'duckdb', 'speechmeter.plan.schema'))); "
        "from speechmeter.cli.main import app; "
        "app(['show', 'run'], standalone_mode=False); app(['compare', 'run', 'run'], standalone_mode=False)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=workshop)
    assert "latency" in done.stdout and "CANNOT TELL" in done.stdout


def test_doctor_and_models_and_version(cli):
    assert "peak memory" in cli("doctor").stdout
    assert "log-mel" in cli("models").stdout
    assert cli("--version").stdout.startswith("speechmeter 0.")


def test_a_wrong_model_among_others_is_one_line_and_the_rest_is_measured(cli, workshop):
    (workshop / "far").mkdir()
    (workshop / "far/config.json").write_text('{"model_type": "new", "auto_map": {"AutoModel": "code.Model"}}')
    models = ["python:fakes.py:nothing", "transformers:./nowhere", "transformers:far", "onnx:absent.onnx"]
    done = cli("run", *(f"--model={model}" for model in models), "--quick", "--launcher", "inline", "-o", "run")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("left out: ")]
    assert len(lines) == 3
    assert "no such directory" in lines[0]
    assert "remote code" in lines[1]
    assert "absent.onnx" in lines[2]
    statuses = [json.loads(line)["status"] for line in (workshop / "run/records.jsonl").read_text().splitlines()]
    assert sorted(statuses) == ["ok", "unavailable", "unavailable", "unavailable"]


def test_meters_named_in_another_order_are_measured_alike_and_compared_as_the_same_case(cli, workshop):
    records = []
    for out, meters in (("one", "memory,latency"), ("other", "latency,memory")):
        model = ("--model", "python:fakes.py:nothing", "--seconds", "1")
        done = cli("run", *model, "--quick", "--meters", meters, "-o", out)
        assert done.returncode == 0, done.stderr
        (line,) = (workshop / out / "records.jsonl").read_text().splitlines()
        records.append(json.loads(line))
    one, other = records
    assert one["case"]["protocol"] == other["case"]["protocol"]
    phases = [
        {m["scope"]: m["notes"]["phases"] for m in record["measurements"] if m["metric"] == "phase.v1"}
        for record in records
    ]
    assert list(phases[0].items()) == list(phases[1].items())
    assert list(phases[0]) == ["process:main", "process:memory"]
    assert "latency" in phases[0]["process:main"]
    done = cli("compare", "one", "other")
    assert done.returncode == 3, done.stderr  # a single round has no spread
    assert "only in" not in done.stdout + done.stderr
