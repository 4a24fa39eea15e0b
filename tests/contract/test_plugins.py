"""A package of its own adds a subject, a workload and a meter by entry points; nothing of ours knows its name."""

import csv
import io
import json

import pytest

PACKAGE = """
from types import MappingProxyType
from speechmeter.core.axes import Axis, Option
from speechmeter.core.metrics import Metric
from speechmeter.core.protocols import ORDINARY, Fed, Installed, Phase, Prepared
from speechmeter.core.types import Batch, Measurement, Stage


class Echo:
    summary = "says what it hears"
    axes = (Axis(name="volume", kind=int, default=1, help="how loud", minimum=1),)
    options = (Option(name="room", kind=str, help="for example hall"),)
    takes = ()
    runs_code = False

    def installed(self):
        return Installed(version="echo 1.0")

    def check(self, case):
        return None

    def unavailable(self, case):
        return "too loud for this machine" if case.axes["volume"] > 10 else None

    def prepare(self, case, device):
        return Prepared(stages=(Stage(name="model", fn=lambda batch: batch.data * case.axes["volume"]),))


class Tones:
    axes = (Axis(name="pitch", kind=int, default=440, help="Hz", minimum=1),)
    options = (Option(name="colour"),)

    def check(self, case):
        return None

    def feeds(self, case):
        return Fed()

    def batches(self, case):
        yield Batch(data=case.axes["pitch"], items=1, audio_s=1.0)


class Loudness:
    name = "loudness"
    metrics = (Metric(id="loudness.v1", unit="dB", direction="lower", title="loudness", formula="output / 10"),)
    environ = MappingProxyType({"LOUDNESS_PROCESS": "1"})

    ways = ORDINARY
    phase = Phase.MEMORY

    def unavailable(self, case):
        return None

    def measure(self, session):
        import os
        assert os.environ["LOUDNESS_PROCESS"] == "1"
        return [Measurement.of(self.metrics[0], [session.call(session.batches[0])[-1] / 10])]


class Older:
    name, metrics, environ, ways = "older", Loudness.metrics, {}, ORDINARY

    def process(self, case):
        return "main"
"""

ENTRY_POINTS = """[speechmeter.subjects]
echo = echo_plugin:Echo
broken = echo_plugin:DoesNotExist

[speechmeter.workloads]
tones = echo_plugin:Tones

[speechmeter.meters]
loudness = echo_plugin:Loudness
older = echo_plugin:Older
"""

PLAN = """models:
  - {name: echo-1, load: echo, room: hall}
workload: {name: tones, colour: pink}
pitch: [100, 200]
volume: [2, 11]
meters: [latency, loudness]
rounds: 2
"""


@pytest.fixture
def plugin(workshop):
    site = workshop / "site"
    info = site / "echo_plugin-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "echo_plugin.py").write_text(PACKAGE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: echo-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    (workshop / "plan.yaml").write_text(PLAN)
    return str(site)


def test_a_plugin_package_works_in_models_run_and_show(cli, plugin, workshop):
    listed = cli("models", PYTHONPATH=plugin)
    assert listed.returncode == 0, listed.stderr
    for word in ("echo 1.0", "says what it hears", "tones", "loudness", "broken", "DoesNotExist"):
        assert word in listed.stdout

    made = cli("run", "plan.yaml", "-o", "run", PYTHONPATH=plugin)
    assert made.returncode == 0, made.stderr
    records = [json.loads(line) for line in (workshop / "run/records.jsonl").read_text().splitlines()]
    assert sorted(r["status"] for r in records) == ["ok"] * 4 + ["unavailable"] * 2
    order = [(r["case"]["axes"]["pitch"], r["round"]) for r in records if r["status"] == "ok"]
    assert order == [(100, 0), (200, 0), (200, 1), (100, 1)]

    assert "loudness.v1 [dB]: output / 10." in made.stdout
    shown = cli("show", "run", "--metric", "loudness", "--format", "csv")  # the plug-in is not needed to read
    assert shown.returncode == 0, shown.stderr
    values = [row["value"] for row in csv.DictReader(io.StringIO(shown.stdout)) if row["value"]]
    assert sorted(map(float, values)) == pytest.approx([20, 40])


def test_a_plugins_axis_and_options_are_checked(cli, plugin, workshop):
    bad = cli("run", "plan.yaml", "--set", "volume=0", "-o", "run", PYTHONPATH=plugin)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert "--set volume: volume must be at least 1" in bad.stderr
    (workshop / "plan.yaml").write_text(PLAN.replace("room", "rom"))
    assert "did you mean 'room'?" in cli("run", "plan.yaml", PYTHONPATH=plugin).stderr
    assert not (workshop / "run").exists()
    assert not (workshop / "runs").exists()


def test_a_meter_without_a_phase_is_refused_with_what_to_write(cli, plugin, workshop):
    bad = cli("run", "plan.yaml", "--meters", "latency,older", "-o", "run", PYTHONPATH=plugin)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert "--meters: the meter plug-in 'older' (echo_plugin:Older) has no phase" in bad.stderr
    assert "phase = Phase.TIMING" in bad.stderr
    assert not (workshop / "run").exists()
