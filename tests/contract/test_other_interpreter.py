"""What measures a model under another interpreter needs the standard library alone."""

import json
import sys
from contextlib import closing
from pathlib import Path

import pytest
from conftest import make_case
from other_interpreters import environment, site_of

from speechmeter.core import metrics
from speechmeter.core.outputs import Keep
from speechmeter.core.types import Limits, Spec
from speechmeter.launch.carried import carried
from speechmeter.launch.executors import SubprocessExecutor
from speechmeter.launch.interpreters import answers

MODEL = """
import json, sys
from pathlib import Path

def make():
    def call(lines):
        roots = sorted({name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names))
        home = sys.modules["speechmeter"].__file__
        Path("imported.json").write_text(json.dumps([sys.executable, home, roots]))
        return list(lines)
    return call
"""


@pytest.fixture
def text_case(tmp_path, monkeypatch):
    """A model that is fed text, which needs no numpy."""
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(MODEL)
    Path("lines.txt").write_text("one line\n")
    return make_case(
        "told", subject=Spec(plugin="python", name="told", source="model.py:make"),
        workload=Spec(plugin="text", name="lines", options={"lines": "lines.txt"}),
        meters=("latency", "memory"), seconds=None,
    )  # fmt: skip


def test_a_model_is_measured_in_an_environment_with_nothing_in_it(text_case, tmp_path):
    python = environment(tmp_path / "empty")
    before = sorted(site_of(python).rglob("*"))
    interpreters = {"told": str(python)}
    said = answers([text_case], interpreters)["told"]
    assert (said.reason, said.absent, said.refused, said.lacks) == ("", {}, {}, ("numpy", "soundfile", "soxr"))
    with closing(SubprocessExecutor(Limits(time_s=300), Keep(), interpreters=interpreters)) as executor:
        outcome = executor.measure(text_case, lambda phase: None)
    assert (outcome.status, outcome.reason) == ("ok", "")
    for metric in (metrics.LATENCY, metrics.MEMORY_CPU_TOTAL):
        assert any(m.values for m in outcome.measurements if m.metric == metric.id and m.scope == "total")
    executable, home, roots = json.loads(Path("imported.json").read_text())
    assert executable == str(python) and Path(home).is_relative_to(carried())
    assert {name for name in roots if not name.startswith("_")} == {"model", "speechmeter"}
    facts = outcome.environment.facts
    assert (facts["interpreter"], facts["python"]) == (str(python), ".".join(map(str, sys.version_info[:3])))
    assert set(facts["packages"]) == {"speechmeter"}
    assert sorted(site_of(python).rglob("*")) == before
