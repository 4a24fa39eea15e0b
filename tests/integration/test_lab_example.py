"""examples/seeds/lab: its plan is the lab's study, and every command of its README works on a small run of it."""

import json
import re
import shlex
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("vl_convert", reason="vl-convert is not installed: pip install 'speechmeter[report]'")

LAB = Path(__file__).parents[2] / "examples/seeds/lab"
README = (LAB / "README.md").read_text()
RUN = "lab-run"
TINY = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv1d(1, 4, 400, 160)

    def forward(self, sound):
        return self.conv(sound[:, None])


def make():
    return Net()
"""


def commands():
    """The commands that the README shows, as words."""
    blocks = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    return [shlex.split(line.partition("#")[0]) for line in lines]


def test_the_plan_is_five_models_at_three_sizes_with_ten_calls_after_the_first(command):
    done = command("run", LAB / "lab.yaml", "--dry-run")
    assert done.code == 0, done.err
    listed = done.out + done.err
    for model in ("log-mel", "mockingjay", "tera", "hubert", "wav2vec2"):
        for seconds in ("0.5", "1", "2"):
            assert f"{model} · cpu · {seconds} s × 1" in listed


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("lab")


@pytest.fixture
def run(folder, command, monkeypatch):
    """The plan with four small models, as many as `relations` needs, and short input; run once for all tests."""
    monkeypatch.chdir(folder)
    if not Path(RUN).exists():
        Path("tiny.py").write_text(TINY)
        models = ("log-mel", "apc", "cpc", "tera=python:tiny.py:make")  # named as a command of the README needs it
        small = [*(f"--model={name}" for name in models), "--seconds", "0.1,0.2,0.4"]
        done = command("run", LAB / "lab.yaml", *small, "--launcher", "inline", "-o", RUN)
        assert done.code == 0, done.err
    return Path(RUN)


def test_the_table_is_mean_and_standard_deviation_of_ten_calls(run, command):
    done = command("show", run, "--metric", "summary", "--stat", "mean-sd", "--format", "json")
    (table,) = json.loads(done.out)
    cells = [dict(zip(table["columns"], row["cells"], strict=True)) for row in table["rows"]]
    assert len(cells) == 4 * 3 and all(cell["latency"]["samples"] == 10 for cell in cells)
    assert all(re.fullmatch(r"[\d.,]+ (s|ms|µs) ± [\d.,]+ (s|ms|µs|ns)", cell["latency"]["text"]) for cell in cells)
    assert {cell["parameters"]["text"] for cell in cells} >= {"0", "4,105,296"}


@pytest.mark.parametrize(
    "words", [words for words in commands() if words[1] in ("show", "plot") and words[2].startswith(RUN)], ids=" ".join
)  # fmt: skip
def test_every_table_and_picture_of_the_readme_can_be_made(words, run, command):
    done = command(*words[1:], *(["--force"] if words[1] == "plot" else []))
    assert done.code == 0, done.err
    assert done.out
