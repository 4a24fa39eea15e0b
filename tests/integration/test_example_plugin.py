"""examples/plugin: the package that the page on plug-ins describes is found by its entry points and measures."""

import configparser
import shutil
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib

EXAMPLE = Path(__file__).parents[2] / "examples/plugin"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="reads the entry points with tomllib")
def test_the_example_package_adds_a_subject_a_workload_and_a_meter(cli, workshop):
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    site = workshop / "site"
    info = site / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    points = configparser.ConfigParser()
    points.read_dict(project["entry-points"])
    with (info / "entry_points.txt").open("w") as file:
        points.write(file)
    shutil.copy(EXAMPLE / "loudness.py", site)
    shutil.copy(EXAMPLE / "tones.yaml", workshop)
    made = cli("run", "tones.yaml", "-o", "run", PYTHONPATH=str(site))
    assert made.returncode == 0, made.stderr
    shown = cli("show", "run", "--metric", "output_values", "--format", "csv")
    assert shown.returncode == 0, shown.stderr
    assert ",400," in shown.stdout and ",200," in shown.stdout  # 2 items of 16,000 samples in frames of 80 and of 160
