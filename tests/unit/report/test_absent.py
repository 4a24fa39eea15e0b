"""A view without figures: one line with the command that gets them, never an empty frame and never nothing."""

import re
import shlex
from pathlib import Path

import pytest

from speechmeter.report import choose
from speechmeter.report.tables import NOT_MEASURED

RUNS = Path(__file__).parents[3] / "examples/runs"
EVERY_VIEW = sorted({*choose.WORDS, "methods", "rtf", "rtfx", "latency", "energy_gpu", "memory_weights"})


@pytest.mark.parametrize("run", ["cpu-grid", "h200-losses", "accuracy-vs-cost"])
@pytest.mark.parametrize("view", EVERY_VIEW)
def test_every_view_has_a_figure_or_says_in_one_line_how_to_get_one(command, run, view):
    done = command("show", RUNS / run, "--metric", view, "--format", "csv" if view != "methods" else "markdown")
    if done.code == 0:
        figures = [line for line in done.out.splitlines()[1:] if f",{NOT_MEASURED}," not in line]
        assert figures, "an empty frame"
        return
    assert done.code == 2
    assert done.out == ""
    (line,) = [line for line in done.err.splitlines() if "unfinished" not in line]
    assert line.startswith(f"speechmeter: --metric: no figures of {view}: this run ")
    if view == "imported":  # nothing that is measured gives them
        assert "speechmeter import FILE" in line
        return
    plan = RUNS / run / "plan.yaml"  # a run put together of several has none
    assert f"speechmeter run {plan if plan.exists() else 'PLAN.yaml'} " in line


@pytest.mark.parametrize("view", ["split", "timeline", "coverage", "operators-by-module", "quality"])
def test_the_command_asks_for_the_meter_beside_those_of_the_run(command, view):
    done = command("show", RUNS / "cpu-grid", "--metric", view)
    meter = {"coverage": "operators", "operators-by-module": "operators"}.get(view, view)
    assert f"did not ask for the meter {meter};" in done.err
    words = shlex.split(re.search(r"speechmeter run .*", done.err).group())
    assert words[words.index("--meters") + 1] == f"latency,memory,parameters,flops,{meter}"


def test_the_command_of_a_refusal_is_one_that_runs(command, tmp_path):
    pytest.importorskip("transformers", reason="the run has a model of transformers")
    done = command("show", RUNS / "cpu-grid", "--metric", "split")
    words = shlex.split(re.search(r"speechmeter (run .*)", done.err).group(1))
    again = command(*words[:-1], tmp_path / "new", "--dry-run")
    assert again.code == 0, again.err


def test_a_real_time_factor_is_not_split_without_the_meter(command):
    done = command("show", RUNS / "cpu-grid", "--metric", "rtf", "--split")
    assert done.code == 2
    assert done.err.startswith(
        "speechmeter: --split: no figures of busy time: this run did not ask for the meter split; measure it with: "
    )
