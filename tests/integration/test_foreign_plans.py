"""Configuration files of other benchmarks, given to the command as they are."""

import pytest
import soundfile

from speechmeter.core import plugins

PROFILE = """\
home: !ref <root>
root: models
pretrained_model: {source: !ref "<home>/tiny", type: EncoderASR}
profiling_dimensions:
  audio_mockup_secs: [1, 2, 5, 8, 32]
  batch_sizes: [1, 4, 8]
  example_audio: voice.flac
  triangle_only: True
  export_logs: True
seed: !apply:os.system [touch pwned]
"""
TWICE = """\
general: {model_type: 3StageS2ST, dataset_size: 1}
stage1: {task: speech_to_text}
stage2: {task: translation}
stage2: {task: text_to_speech}
"""


@pytest.fixture
def profile(workshop):
    (workshop / "models" / "tiny").mkdir(parents=True)
    (workshop / "models" / "tiny" / "hyperparams.yaml").write_text("modules: {encoder: !new:torch.nn.Identity {}}\n")
    soundfile.write(workshop / "voice.flac", [0.1] * 1600, 16000)
    (workshop / "profile.yaml").write_text(PROFILE)


def test_a_recipe_with_a_local_model_lists_its_cases(cli, workshop, profile):
    subject = plugins.subject("speechbrain") if "speechbrain" in plugins.names(plugins.SUBJECTS) else None
    if subject is None or subject.installed().missing:
        pytest.skip("needs the speechbrain adapter and its package")
    done = cli("run", "profile.yaml", "--trust", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("tiny · cpu") == 15
    assert done.stdout.count("left out: excluded by `triangle`, which skips long audio with a large batch") == 5
    assert "profile.yaml:10: 'seed' has no equivalent" in done.stderr
    assert not (workshop / "pwned").exists()


def test_a_recipe_runs_with_another_model(cli, workshop, profile):
    done = cli("run", "profile.yaml", "--model", "python:fakes.py:nothing", "--seconds", "1", "--batch", "1,2",
               "--no-triangle", "--meters", "latency", "--quick", "-o", "run")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "speechmeter: profile.yaml:1: 'home' has no equivalent" in done.stderr
    stored = (workshop / "run/plan.yaml").read_text()
    assert "# profile.yaml:1: 'home'" in stored
    assert "trace: true" in stored
    assert "schedule:\n  wait: 1\n  warmup: 2\n  active: 7\n" in stored
    assert "pretrained_model" not in stored
    assert not (workshop / "pwned").exists()
    again = cli("run", "--resume", "-o", "run", "--trust", "--dry-run")
    assert "2 cases, 0 skipped, 0 unavailable; 0 measurements" in again.stdout, again.stderr


def test_a_stage_that_stands_twice_stops_the_command(cli, workshop):
    (workshop / "three.yaml").write_text(TWICE)
    done = cli("run", "three.yaml", "--dry-run")
    assert done.returncode == 2
    assert done.stderr.strip() == (
        "speechmeter: three.yaml:4: stage2 appears twice, on lines 3 and 4; YAML would keep only the second; "
        "rename the one on line 4 to stage3"
    )
