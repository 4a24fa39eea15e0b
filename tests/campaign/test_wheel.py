"""The wheel in an environment of its own, outside of the repository: what the README says after installing works."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LARGEST_MB = 2.5
pytestmark = pytest.mark.campaign


def run(*words, cwd):
    return subprocess.run([*map(str, words)], cwd=cwd, check=True, capture_output=True, text=True, timeout=600).stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with an environment in `env` that holds the wheel and what it requires."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "venv", "env", cwd=folder)
    run("env/bin/pip", "wheel", "--no-deps", "--wheel-dir", "dist", ROOT, cwd=folder)
    (wheel,) = (folder / "dist").glob("*.whl")
    run("env/bin/pip", "install", "--constraint", ROOT / "constraints.txt", wheel, cwd=folder)
    return folder


def test_the_wheel_is_small(installed):
    (wheel,) = (installed / "dist").glob("*.whl")
    assert wheel.stat().st_size < LARGEST_MB * 1e6


def test_the_command_starts_and_shows_an_example_that_came_with_it(installed):
    command = installed / "env/bin/speechmeter"
    assert "init " in run(command, "--help", cwd=installed)
    run(command, "init", "start", cwd=installed)
    table = run(command, "show", "examples/runs/cpu-grid", "--metric", "rtf", cwd=installed / "start")
    assert "wav2vec2-base · cpu: real-time factor" in table
    assert "torch is not installed" in run(command, "models", cwd=installed)
    refused = subprocess.run([command, "init", "start"], cwd=installed, capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "already exists" in refused.stderr
